"""Bodies of requests: the contracts' types, read as JSON, with unknown fields refused."""

from typing import Annotated, Any

from fastapi import Body
from pydantic import BeforeValidator
from pydantic_core import PydanticSerializationError, to_json

from mnemon_contracts.base import Contract, InvalidBody


def annotate_body(contract: type[Contract]) -> Any:
    """Return the annotation of a body that a route takes. A body without required fields may be absent.

    Unlike a consumer of events, the gateway refuses unknown fields: a misspelled field would otherwise have
    no effect, and its sender would not notice.
    """

    def read(value: object) -> object:
        # FastAPI validates Python values; the contracts read times from JSON only.
        return value if isinstance(value, contract) else contract.parse_strict(_encode(value))

    is_optional = not any(field.is_required() for field in contract.model_fields.values())
    body = Body(default_factory=contract) if is_optional else Body()
    return Annotated[contract, BeforeValidator(read), body]


def _encode(value: object) -> bytes:
    if isinstance(value, bytes):  # curl sends no JSON content type unless told to
        return value
    try:
        return to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError as error:
        raise InvalidBody("body", "holds a lone surrogate, which is not Unicode text") from error
