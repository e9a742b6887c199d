"""Bodies of requests: the contracts' types, read as JSON, with unknown fields refused."""

import json
from typing import Annotated, Any, Final

from fastapi import Body
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError, PydanticSerializationError, from_json, to_json

from mnemon_contracts.base import Contract, InvalidBody

_NO_INTEGER: Final = "Input should be a valid integer"
_EXACT: Final = 2**53
"""Bound below which all whole numbers are exact as floats."""


def annotate_body(contract: type[Contract]) -> Any:
    """Return the annotation of a body that a route takes. A body without required fields may be absent.

    Unlike a consumer of events, the gateway refuses unknown fields, and values of other types: a misspelled
    field would otherwise have no effect, and its sender would not notice.
    """

    def parse_body(value: object) -> object:
        if isinstance(value, contract):
            return value
        # FastAPI parses a body only if its content type is JSON; curl sends another unless told to.
        parsed = _parse_json(value) if isinstance(value, bytes) else value
        # FastAPI validates Python values; the contracts read times from JSON only.
        body = _encode_json(parsed)
        try:
            return contract.parse_strict(body)
        except InvalidBody as error:
            if _NO_INTEGER not in error.problem:
                raise
            return contract.parse_strict(to_json(_restore_integers(from_json(body))))

    is_optional = not any(field.is_required() for field in contract.model_fields.values())
    body = Body(default_factory=contract) if is_optional else Body()
    return Annotated[contract, BeforeValidator(parse_body), body]


def _restore_integers(value: Any) -> Any:
    """Return a value with integers in the place of floats such as 30.0: JSON has one type for both."""
    match value:
        case float() if value.is_integer() and abs(value) < _EXACT:
            return int(value)
        case list():
            return [_restore_integers(each) for each in value]
        case dict():
            return {name: _restore_integers(each) for name, each in value.items()}
    return value


def _parse_json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PydanticCustomError(
            "json_invalid", "is not JSON in UTF-8, or is nested too deeply; correct it"
        ) from error


def _encode_json(value: object) -> bytes:
    try:
        return to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError as error:
        problem = (
            "contains a lone surrogate, which is not valid Unicode; remove the character"
            if "surrogate" in str(error)
            else "is nested too deeply; send JSON with fewer levels"
        )
        raise InvalidBody("body", problem) from error
