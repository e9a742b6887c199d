"""OpenAI's wire format: chat completions and models; batches are in `openai_batches`."""

import re

from mnemon_bench.provider_server.openai_batches import ROUTES as BATCH_ROUTES
from mnemon_bench.provider_server.openai_bodies import (
    COMPLETIONS,
    UnsupportedParameter,
    build_completion,
    build_parameter_error,
    parse_request,
    stream_completion,
)
from mnemon_bench.provider_server.state import ProviderState
from mnemon_bench.provider_server.wire import HttpRequest, HttpResponse, Route


def _complete_chat(state: ProviderState, request: HttpRequest) -> HttpResponse:
    try:
        question = parse_request(request.json(), state)
    except UnsupportedParameter as error:
        return HttpResponse(build_parameter_error(error), 400)
    answered = state.ask(question)
    if request.json().get("stream"):
        return HttpResponse(
            stream_completion(question, answered), headers={"Content-Type": "text/event-stream"}
        )
    return HttpResponse(state.faults.rewrite(question.text, build_completion(question, answered)))


def _list_models(state: ProviderState, request: HttpRequest) -> HttpResponse:
    return HttpResponse(
        {"object": "list", "data": [{"id": "a-model", "object": "model", "owned_by": "nobody"}]}
    )


ROUTES = (
    Route("POST", re.compile(COMPLETIONS), _complete_chat),
    Route("GET", re.compile("/v1/models"), _list_models),
    *BATCH_ROUTES,
)
