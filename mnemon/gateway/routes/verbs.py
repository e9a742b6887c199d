"""Routes of the verbs, `POST /v1/users/{user}/<verb>`; bodies and answers follow the contracts."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from mnemon.gateway.callers import CallerOfRequest
from mnemon.gateway.request_bodies import annotate_body
from mnemon.gateway.routes.parameters import HeaderText, Memory, User
from mnemon_contracts.base import Contract, InvalidBody, check_identifier
from mnemon_contracts.registry import VERBS, VerbContract
from mnemon_contracts.verbs.ask import ProfileV1
from mnemon_contracts.verbs.tools import DocumentV1, ForgetV1, TasksV1, UpdateV2
from mnemon_infra.settings.api_keys import Scope

RequestKey = Annotated[
    HeaderText | None,
    Header(
        min_length=1,
        max_length=240,
        description="Id of the request. A request that adds a fact, a task or a document, changes a fact, or "
        "sets the user's data does so once, however often it is repeated with the same key, so that a late "
        "repetition undoes no other change. `update` and `forget` take no key together with `query`, because "
        "a repetition may mean another fact. All other requests ignore the key: they may be repeated without "
        "one.",
    ),
]
_IgnoredKey = Annotated[str | None, Header(include_in_schema=False)]


def select_scope(verb: str, request: Contract) -> Scope:
    """Return the scope that the key of a request needs."""
    match request:
        case ProfileV1(fields=None) | TasksV1(action="list") | DocumentV1(action="list"):
            return "read"
    if VERBS[verb].only_reads:
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
        idempotency_key: Any = None,
    ) -> Response:
        caller.require_permission(select_scope(verb.name, body), user)
        key = _check_key(idempotency_key, body) if verb.takes_key else None
        questioner = memory.get_questioner(caller.tenant)
        found = await questioner.ask(user, verb.name, body, reply, version, request_id=key)
        return Response(found.serialize(), media_type="application/json")

    answer.__annotations__["body"] = annotate_body(verb.requests[-1])
    answer.__annotations__["idempotency_key"] = RequestKey if verb.takes_key else _IgnoredKey
    return answer


def _check_key(key: str | None, request: Contract) -> str | None:
    """Return the key of a request; None if the request has none.

    Raises:
        InvalidBody: the key cannot be an id, or a repetition of the request may change another fact.
    """
    match request:
        case UpdateV2(query=str()) | ForgetV1(query=str()) if key is not None:
            raise InvalidBody(
                "Idempotency-Key",
                "works only with the `id` of the fact, because a repeated `query` may mean another fact; "
                "send `id` instead of `query`, or leave the key out",
            )
    return None if key is None else check_identifier("Idempotency-Key", key)
