"""Base of every contract: an immutable value that ignores unknown fields when it is parsed."""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from itertools import takewhile
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails

BODY_LIMIT = 1_048_576
"""Maximum size of the body of an event or a request, in bytes. A larger event becomes a dead letter, and a
larger request is refused."""

NESTING_LIMIT = 200
"""Maximum number of objects and arrays around a value of a body, the body included. pydantic's JSON parser
refuses a deeper body."""

ID_LIMIT = 255
"""Maximum length of an id, such as that of a user or an event, in UTF-8 bytes."""


_BEGINS_WITH_A_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAY_OR_TIME = TypeAdapter(datetime)
_ANY_OBJECT = TypeAdapter(dict[str, object])


class InvalidBody(ValueError):
    """A body that does not satisfy its contract. `field` is the first invalid field, or `body`."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class Contract(BaseModel):
    """Base class of events, requests, replies and their parts: values that are sent as JSON.

    `parse` ignores unknown fields, so that an older consumer serves a newer bot. `create_strict` refuses
    them, so that a misspelled field raises an error in the code that sends it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, hide_input_in_errors=True)

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Parse the JSON body of an event, a request or a reply. Unknown fields are ignored.

        Raises:
            InvalidBody: the body is too large, is not JSON, or does not satisfy the contract.
        """
        check_body_size(body)
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            raise _build_invalid_body(error, declared=_list_declared_fields(Contract)) from error

    @classmethod
    def parse_strict(cls, body: bytes) -> Self:
        """Parse a body of any size, and refuse unknown fields and values of other types, such as `"5"` for 5.

        Raises:
            InvalidBody: the body is not JSON, or does not satisfy the contract.
        """
        try:
            return cls.model_validate_json(body, strict=True, extra="forbid")
        except ValidationError as error:
            raise _build_invalid_body(error, value=_parse_object(body)) from error

    @classmethod
    def list_unknown_fields(cls, body: bytes) -> tuple[str, ...]:
        """Return the top-level fields of a JSON object that this contract lacks, and that `parse` ignores.

        A body that is not a JSON object has none.
        """
        return tuple(name for name in _parse_object(body) if name not in cls.model_fields)

    @classmethod
    def create_strict(cls, **fields: Any) -> Self:
        """Create a value from its fields, to send it.

        Raises:
            InvalidBody: a field is unknown, missing or wrong.
        """
        try:
            return cls.model_validate(fields, extra="forbid")
        except ValidationError as error:
            raise _build_invalid_body(error, value=fields) from error

    def serialize(self) -> bytes:
        """Return the JSON that `encode_body` returns, of any size; `BODY_LIMIT` does not limit replies."""
        return self.__pydantic_serializer__.to_json(self, exclude_none=True)

    def encode_body(self) -> bytes:
        """Return the JSON for the wire, without fields that are None or that their `exclude_if` leaves out.

        Raises:
            InvalidBody: the body is too deep, see `check_nesting`, or the JSON is larger than `BODY_LIMIT`.
        """
        self.check_nesting()
        body = self.serialize()
        check_body_size(body)
        return body

    def check_nesting(self) -> None:
        """Check that no field is nested too deeply for the parser.

        Raises:
            InvalidBody: a field is nested more deeply than `NESTING_LIMIT` allows.
        """
        for field, value in self.__dict__.items():
            if _is_nested_deeper(value, NESTING_LIMIT - 1):
                raise InvalidBody(
                    field,
                    f"is nested too deeply, and the limit is {NESTING_LIMIT} levels in a body; "
                    "send a flatter value",
                )


def check_body_size(body: bytes) -> None:
    """Check that a body may be sent.

    Raises:
        InvalidBody: the body is larger than `BODY_LIMIT`.
    """
    if len(body) > BODY_LIMIT:
        raise InvalidBody(
            "body", f"has {len(body):,} bytes, and the limit is {BODY_LIMIT:,}; send a smaller body"
        )


def measure_headers(headers: Mapping[str, str]) -> int:
    """Return the bytes of the headers of a NATS message, which `max_payload` of the server counts.

    The line that opens the headers and the one that ends them are not included.
    """
    return sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())


def _is_nested_deeper(value: object, levels: int) -> bool:
    """Return whether a value has more than `levels` levels of objects and arrays."""
    match value:
        case None | str() | int() | float():  # first, because most values are of these types
            return False
        case dict():
            parts: Iterable[object] = value.values()
        case list() | tuple():
            parts = value
        case Contract():
            parts = value.__dict__.values()
        case _:
            return False
    return levels == 0 or any(_is_nested_deeper(part, levels - 1) for part in parts)


def is_empty(value: tuple[object, ...]) -> bool:
    """Return whether a list field has no items.

    A list field that is added to a released contract has this function as `exclude_if`. So an event that was
    stored without the field is written without the field again, and a rebuild makes an equal row.
    """
    return not value


_UNION_LABEL: Final = re.compile(
    r"<.*>|[a-z-]+\[.*\]|(?:constrained-)?(?:bool|dict|float|int|list|str)|NoneType", re.DOTALL
)
"""Pattern of a part of the path in pydantic's error that names a member of a union, not a field.

The part is a type or a tag. A key of the caller may look the same.
"""


def describe_problem(error: ErrorDetails) -> str:
    """Return pydantic's message about an invalid value, without its prefix `Value error, `.

    The message on the length of a list names an array, as messages on types do, and not Python's tuple.
    """
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] in ("too_short", "too_long"):
        return message.replace("Tuple", "Array", 1).replace(" after validation", "", 1)
    return message


def describe_first_problem(error: ValidationError, item: str = "item") -> str:
    """Return the first problem of a value on one line: the field, and pydantic's message about it.

    Args:
        error: the error of pydantic, which may have several problems.
        item: noun for an item of a list; it stands before the number of the item, from 1.
    """
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = [f"{item} {part + 1}" if isinstance(part, int) else part for part in _find_path(first, {})]
    return ": ".join([*path, describe_problem(first)])


def _list_declared_fields(contract: type[Contract]) -> set[str]:
    """Return the names of all fields of a contract and of its subclasses."""
    return set(contract.model_fields).union(*map(_list_declared_fields, contract.__subclasses__()))


def _parse_object(body: bytes) -> dict[str, object]:
    """Parse a JSON object; return an empty one for a body that is not a JSON object."""
    try:
        return _ANY_OBJECT.validate_json(body)
    except ValidationError:
        return {}


def _build_invalid_body(
    error: ValidationError,
    *,
    value: Mapping[str, object] = MappingProxyType({}),
    declared: Container[str] | None = None,
) -> InvalidBody:
    """Describe an invalid value without repeating it: errors are logged, and content must not be logged.

    Args:
        error: the error of pydantic.
        value: the invalid value, whose keys the error may repeat.
        declared: names that the error may repeat; None for all. The keys of a free object, such as
            `metadata`, are content, too: the path in the error ends at the object.
    """
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    path = _find_path(errors[0], value)
    # A value that no member of a union accepts has an error for each member.
    problem = ", or ".join(describe_problem(each) for each in errors if _find_path(each, value) == path)
    if declared is not None:
        path = tuple(takewhile(lambda part: isinstance(part, int) or part in declared, path))
    if path and isinstance(path[-1], int):
        problem = f"{problem} (index {path[-1]})"
        path = path[:-1]
    named = ".".join(str(part) for part in path) or "body"
    field = named if named.isprintable() else ascii(named)[1:-1]
    return InvalidBody(field, problem)


def _find_path(error: ErrorDetails, value: object) -> tuple[int | str, ...]:
    """Return the fields, keys and indexes that lead to an invalid value, without the members of unions.

    A part that looks like a member of a union is a key if `value` has such a key at this place.
    """
    path = []
    for part in error["loc"]:
        is_key = isinstance(value, Mapping) and part in value
        if is_key or not _UNION_LABEL.fullmatch(str(part)):
            path.append(part)
            value = _get_part(value, part)
    return tuple(path)


def _get_part(value: object, part: int | str) -> object:
    """Return the value of a key or an index; None if there is none."""
    match value:
        case Mapping():
            return value.get(part)
        case list() | tuple() if isinstance(part, int) and part < len(value):
            return value[part]
        case _:
            return None


def _check_storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains U+0000, which PostgreSQL cannot store; remove the character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            "contains a lone surrogate, which is not valid Unicode; remove the character"
        ) from error
    return text


def _check_storable_json(value: JsonValue) -> JsonValue:
    match value:
        case str():
            _check_storable(value)
        case float() if not isfinite(value):
            raise ValueError(
                "contains NaN or an infinite number, which JSON cannot express; send null instead"
            )
        case list():
            for item in value:
                _check_storable_json(item)
        case dict():
            for key, item in value.items():
                _check_storable(key)
                _check_storable_json(item)
    return value


def _convert_to_utc(moment: datetime) -> datetime:
    # Refuse the first and the last year of the calendar: any other time stays valid in any zone and when it
    # is rounded.
    if not MINYEAR < moment.year < MAXYEAR:
        raise ValueError(f"must be in the years {MINYEAR + 1} to {MAXYEAR - 1}")
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not MINYEAR < moment.year < MAXYEAR:
        raise ValueError(f"must be in the years {MINYEAR + 1} to {MAXYEAR - 1} after conversion to UTC")
    return moment


def _parse_day_or_time(written: object) -> object:
    if not isinstance(written, str):
        return written
    try:
        # pydantic would read digits alone as seconds since 1970.
        if _BEGINS_WITH_A_DAY.match(written):
            return _DAY_OR_TIME.validate_python(written)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False, include_context=False)[0]["msg"]) from error
    raise ValueError("Input should be a date or a time, such as 2026-12-01 or 2026-12-01T18:00:00Z")


def _check_length(identifier: str) -> str:
    size = len(identifier.encode())
    if size > ID_LIMIT:
        raise ValueError(f"has {size} bytes, and the limit is {ID_LIMIT}; send a shorter id")
    return identifier


def check_text(field: str, text: str) -> str:
    """Check a text outside of a body, for example in a form, and return it.

    Raises:
        InvalidBody: the text contains U+0000 or is not valid Unicode. The error names the field.
    """
    return _check_field(field, text, _check_storable)


def check_identifier(field: str, identifier: str) -> str:
    """Check an id outside of a body, for example in a header, and return it; an empty id passes the check.

    Raises:
        InvalidBody: the id is too long, contains U+0000 or is not valid Unicode. The error names the field.
    """
    if identifier.isascii() and "\0" not in identifier and len(identifier) <= ID_LIMIT:
        return identifier  # fast path: most headers are ASCII
    return _check_field(field, check_text(field, identifier), _check_length)


def _check_field(field: str, text: str, check: Callable[[str], str]) -> str:
    try:
        return check(text)
    except ValueError as error:
        raise InvalidBody(field, str(error)) from error


Text = Annotated[str, AfterValidator(_check_storable)]
"""Any valid Unicode text without U+0000."""

Identifier = Annotated[
    str, Field(min_length=1, max_length=255), AfterValidator(_check_storable), AfterValidator(_check_length)
]
"""An id: valid Unicode text of 1 to 255 bytes in UTF-8, without U+0000."""

Moment = Annotated[datetime, Field(strict=True), AfterValidator(_convert_to_utc)]
"""RFC 3339 text, such as `2026-11-21T10:00:00Z`, in the years 2 to 9998; without an offset it is UTC."""

MomentOrDay = Annotated[Moment, BeforeValidator(_parse_day_or_time)]
"""A `Moment`, or a day such as `2026-11-21`, which models write; a day means its first moment in UTC."""

Json = Annotated[JsonValue, AfterValidator(_check_storable_json)]
"""Any JSON value without U+0000, lone surrogates, NaN or infinities."""

JsonObject = dict[Text, Json]
"""A JSON object."""

LogPosition = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""A position in the stream `LOG`; PostgreSQL keeps it as a bigint."""


class Event(Contract):
    """Base of every event: `id` is its identity where the header `Nats-Msg-Id` is absent."""

    id: Identifier | None = Field(
        default=None,
        description="Identity of the event: a second event of the user with the same id is a copy and "
        "changes nothing. The header Nats-Msg-Id takes precedence; without either, the id is "
        "`LOG:<sequence>`.",
    )
