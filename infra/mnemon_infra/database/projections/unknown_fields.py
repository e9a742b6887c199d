"""Fields of events that a newer version wrote: the row keeps them although this version does not know them.

While processes of two versions share the log during an upgrade, either of them may write the row of an event.
The row has to be the same.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from mnemon_contracts.base import Contract, Event, JsonObject
from mnemon_contracts.registry import EVENTS

_STORABLE: Final = TypeAdapter(JsonObject)

_KNOWN_NAMES: Final = frozenset(
    name for event in EVENTS.values() for version in event.versions for name in version.model_fields
)
"""Names of the fields of all events.

Queries over several kinds of events read these fields. So a row leaves out an unknown field that has one of
these names.
"""


def encode_body(event: Event, original: bytes) -> bytes:
    """Return the body of an event for its row: the known fields, and unknown fields of the original body.

    Two kinds of unknown fields are left out: those that PostgreSQL cannot store, and those at the top of the
    body that have the name of a field of another event.

    Args:
        event: the event, read from the original body.
        original: the body in the log. Its version must be the latest one that this mnemon knows.
    """
    body = event.encode_body()
    if body == original:
        return body  # the usual case: an event that this version wrote
    try:
        given, known = from_json(original), from_json(body)
    except ValueError:
        return body
    if not isinstance(given, dict):
        return body
    own = type(event).model_fields
    kept = {name: field for name, field in given.items() if name in own or name not in _KNOWN_NAMES}
    if not _add_unknown_fields(event, known, kept):
        return body
    return _STORABLE.dump_json(known)


def _add_unknown_fields(value: Contract, known: dict[str, Any], given: Mapping[str, Any]) -> bool:
    """Add to `known` the storable fields of `given` that a contract, or one nested in it, does not have.

    Returns:
        Whether any field was added.
    """
    is_changed = False
    for name, field in given.items():
        if name not in type(value).model_fields:
            if _is_storable(name, field):
                known[name] = field
                is_changed = True
            continue
        for inner, known_inner, given_inner in _pair_values(getattr(value, name), known.get(name), field):
            if (
                isinstance(inner, Contract)
                and isinstance(known_inner, dict)
                and isinstance(given_inner, dict)
            ):
                is_changed |= _add_unknown_fields(inner, known_inner, given_inner)
    return is_changed


def _pair_values(value: object, known: object, given: object) -> list[tuple[object, object, object]]:
    """Return one tuple for each index of three sequences; for other arguments, one tuple of the three."""
    if isinstance(value, tuple) and isinstance(known, list) and isinstance(given, list):
        return list(zip(value, known, given, strict=False))
    return [(value, known, given)]


def _is_storable(name: str, field: object) -> bool:
    try:
        _STORABLE.validate_python({name: field})
    except ValidationError:
        return False
    return True
