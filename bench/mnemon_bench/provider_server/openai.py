"""OpenAI's wire format: chat completions and models; batches are in `openai_batches`."""

import re

from mnemon_bench.provider_server.openai_batches import ROUTES as BATCH_ROUTES
from mnemon_bench.provider_server.openai_bodies import (
    COMPLETIONS,
    NotTaken,
    asked,
    completion,
    not_taken,
    streamed,
)
from mnemon_bench.provider_server.state import State
from mnemon_bench.provider_server.wire import Request, Response, Route


def _complete(state: State, request: Request) -> Response:
    try:
        question = asked(request.json(), state)
    except NotTaken as error:
        return Response(not_taken(error), 400)
    answered = state.ask(question)
    if request.json().get("stream"):
        return Response(streamed(question, answered), headers={"Content-Type": "text/event-stream"})
    return Response(state.faults.rewrite(question.text, completion(question, answered)))


def _models(state: State, request: Request) -> Response:
    return Response({"object": "list", "data": [{"id": "a-model", "object": "model", "owned_by": "nobody"}]})


ROUTES = (
    Route("POST", re.compile(COMPLETIONS), _complete),
    Route("GET", re.compile("/v1/models"), _models),
    *BATCH_ROUTES,
)
