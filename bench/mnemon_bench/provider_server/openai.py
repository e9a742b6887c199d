"""OpenAI's wire format: chat completions and models; batches are in `openai_batches`."""

import re

from mnemon_bench.provider_server.openai_batches import ROUTES as BATCH_ROUTES
from mnemon_bench.provider_server.openai_bodies import (
    COMPLETIONS,
    UnsupportedParameter,
    build_completion,
    parse_request,
    refuse_parameter,
    stream_completion,
)
from mnemon_bench.provider_server.state import ProviderState
from mnemon_bench.provider_server.wire import HttpRequest, Response, Route


def _complete(state: ProviderState, request: HttpRequest) -> Response:
    try:
        question = parse_request(request.json(), state)
    except UnsupportedParameter as error:
        return Response(refuse_parameter(error), 400)
    answered = state.ask(question)
    if request.json().get("stream"):
        return Response(stream_completion(question, answered), headers={"Content-Type": "text/event-stream"})
    return Response(state.faults.rewrite(question.text, build_completion(question, answered)))


def _models(state: ProviderState, request: HttpRequest) -> Response:
    return Response({"object": "list", "data": [{"id": "a-model", "object": "model", "owned_by": "nobody"}]})


ROUTES = (
    Route("POST", re.compile(COMPLETIONS), _complete),
    Route("GET", re.compile("/v1/models"), _models),
    *BATCH_ROUTES,
)
