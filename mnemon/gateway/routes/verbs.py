"""Routes of the verbs, `POST /v1/users/{user}/<verb>`; bodies and answers follow the contracts."""

from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Response

from mnemon.gateway.callers import CallerOfRequest
from mnemon.gateway.request_bodies import annotate_body
from mnemon.gateway.routes.parameters import Memory, User
from mnemon_contracts.base import Contract
from mnemon_contracts.registry import VERBS, VerbContract
from mnemon_contracts.verbs.ask import ProfileV1
from mnemon_contracts.verbs.tools import DocumentV1, TasksV1
from mnemon_infra.settings.api_keys import Scope

_READING: Final = frozenset({"context", "search", "history", "read", "get", "status"})


def select_scope(verb: str, request: Contract) -> Scope:
    """Return the scope that the key of a request needs."""
    match request:
        case ProfileV1(fields=None) | TasksV1(action="list") | DocumentV1(action="list"):
            return "read"
    if verb in _READING:
        return "read"
    return "erase" if verb == "erase" else "write"


def create_verb_routes() -> APIRouter:
    """Return the routes of all verbs, each in its latest version."""
    router = APIRouter(prefix="/v1/users/{user:path}", tags=["verbs"])
    for verb in VERBS.values():
        request, reply = verb.requests[-1], verb.replies[-1]
        router.add_api_route(
            f"/{verb.name}",
            _create_endpoint(verb),
            methods=["POST"],
            name=verb.name,
            operation_id=verb.name,
            summary=" ".join((request.__doc__ or "").split()).rstrip("."),
            response_model=reply,
            response_description=(reply.__doc__ or "").partition("\n")[0],
        )
    return router


def _create_endpoint(verb: VerbContract) -> Callable[..., Any]:
    reply, version = verb.replies[-1], len(verb.requests)

    async def answer(
        user: User,
        body: Any,
        caller: CallerOfRequest,
        memory: Memory,
    ) -> Response:
        caller.require_permission(select_scope(verb.name, body), user)
        found = await memory.get_questioner(caller.tenant).ask(user, verb.name, body, reply, version)
        return Response(found.serialize(), media_type="application/json")

    answer.__annotations__["body"] = annotate_body(verb.requests[-1])
    return answer
