"""Parameters that several routes have."""

from http import HTTPStatus
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Query, Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query as QueryParameter
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from mnemon.gateway.memory_access import MemoryAccess, get_memory
from mnemon.gateway.problems import Problem
from mnemon_contracts.base import InvalidBody, LogPosition


async def require_utf8(request: Request) -> None:
    """Check that path and query are UTF-8: the framework would read all other bytes as the same character.

    Raises:
        Problem: the path or the query is not UTF-8.
    """
    for part in ("raw_path", "query_string"):
        try:
            unquote(request.scope[part].decode(), errors="strict")
        except UnicodeDecodeError as error:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "bad_request",
                "the address is not UTF-8: send ids and query parameters in UTF-8, percent-encoded",
            ) from error


async def require_known_parameters(request: Request) -> None:
    """Check that the route takes each parameter of the query: a misspelled one would have no effect.

    Raises:
        InvalidBody: the route does not take a parameter; the error names the parameter.
    """
    if not request.query_params:
        return
    fields = get_flat_params(request.scope["route"].dependant)
    known = sorted(each.alias for each in fields if isinstance(each.field_info, QueryParameter))
    for name in request.query_params:
        if name not in known:
            taken = ", ".join(known) or "no parameters"
            raise InvalidBody(name, f"is an unknown parameter; the address takes {taken}")


def _require_digits(value: object) -> object:
    if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
        raise PydanticCustomError("int_parsing", "must be a whole number, in ASCII digits without a sign")
    return value


def _decode_utf8(value: object) -> object:
    # Starlette decodes header bytes as Latin-1, whatever their encoding.
    try:
        return value.encode("latin-1").decode() if isinstance(value, str) else value
    except UnicodeDecodeError as error:
        raise PydanticCustomError("string_unicode", "is not UTF-8; send it in UTF-8") from error


HeaderText = Annotated[str, BeforeValidator(_decode_utf8)]
"""Text in a header, in UTF-8."""

PositionParameter = Annotated[LogPosition, BeforeValidator(_require_digits)]
"""A log position in a query or a header. Pydantic would also take `+1.0` and `1_000` for whole numbers."""

User = Annotated[str, Path(description="Id of the user, percent-encoded.", min_length=1, max_length=255)]
Conversation = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=255,
        description="Id of the conversation. Default: the current conversation; for `started`, a new one.",
    ),
]
Memory = Annotated[MemoryAccess, Depends(get_memory)]
