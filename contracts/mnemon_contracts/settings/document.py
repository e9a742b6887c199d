"""Settings as they are stored: JSON objects that hold what was set, and nothing else.

The default's document is laid over the defaults of `mnemon_contracts.settings.groups`, a tenant's over both.
"""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias

from pydantic_core import from_json

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.groups import SettingsV1

Document: TypeAlias = Mapping[str, Any]
"""A JSON object, groups within it; never changed in place."""

NOTHING: Document = MappingProxyType({})
"""Sets nothing."""

FOR_EVERYBODY = frozenset({"embedding"})
"""Groups that no tenant has of its own: the vectors of all tenants are in the same collections."""


def read_document(body: bytes | None) -> Document:
    """A stored document; nothing at all is one that sets nothing.

    Raises:
        InvalidBody: it is no JSON object.
    """
    try:
        document = from_json(body, allow_inf_nan=False) if body else {}
    except ValueError as error:
        raise InvalidBody("body", f"is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidBody("body", "is not a JSON object")
    return document


def document_of(settings: SettingsV1) -> Document:
    """The document that sets what differs from the defaults."""
    return settings.model_dump(mode="json", exclude_defaults=True)


def stored(document: Document) -> bytes:
    """The JSON of a document."""
    return json.dumps(dict(document), ensure_ascii=False).encode()


def in_force(default: Document, own: Document = NOTHING) -> SettingsV1:
    """What holds for everybody, or for a tenant that has settings of its own.

    Raises:
        InvalidBody: a value is wrong, or does not go with another; `field` is its name.
    """
    for name in own:
        if name in FOR_EVERYBODY:
            raise InvalidBody(name, "is the same for every tenant; set it without a tenant")
    return SettingsV1.read(json.dumps(laid_over(default, own)).encode())


def laid_over(below: Document, above: Document) -> Document:
    """Everything that either sets; where both do, it is as above."""
    both = dict(below)
    for name, value in above.items():
        former = below.get(name)
        if isinstance(former, Mapping) and isinstance(value, Mapping):
            both[name] = laid_over(former, value)
        else:
            both[name] = value
    return both


def flat(document: Document, prefix: str = "") -> dict[str, Any]:
    """The values by full name, such as `limits.per_user`."""
    values: dict[str, Any] = {}
    for name, value in document.items():
        full = prefix + name
        values |= flat(value, f"{full}.") if isinstance(value, Mapping) else {full: value}
    return values


DEFAULTS: Mapping[str, Any] = MappingProxyType(flat(SettingsV1().model_dump(mode="json")))
"""Every setting there is by its full name, and its value where nobody has set it."""


def named(name: str) -> list[str]:
    """The settings of this name: one, or those of a group.

    Raises:
        InvalidBody: there are none; the message has the names that are near.
    """
    found = [each for each in DEFAULTS if each == name or each.startswith(f"{name}.")]
    if not found:
        near = get_close_matches(name, DEFAULTS, n=3) or [each for each in DEFAULTS if name in each][:3]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InvalidBody(name, f"there is no such setting{hint}")
    return found


def with_value(document: Document, name: str, value: Any) -> Document:
    """The document, setting one more, which must be known.

    Raises:
        InvalidBody: there is no setting of this name, or it names a group.
    """
    settings = named(name)
    if settings != [name]:
        raise InvalidBody(name, f"is a group of settings; set one of {', '.join(settings)}")
    *groups, last = name.split(".")
    return laid_over(document, reduce(lambda inner, group: {group: inner}, reversed(groups), {last: value}))


def without(document: Document, name: str) -> Document:
    """The document without a setting or a group, which must be known.

    Raises:
        InvalidBody: there is no setting and no group of this name.
    """
    named(name)
    return _without(document, name.split("."))


def _without(document: Document, path: list[str]) -> Document:
    first, *rest = path
    inner = document.get(first)
    if rest and isinstance(inner, Mapping) and (kept := _without(inner, rest)):
        return {**document, first: kept}
    return {name: value for name, value in document.items() if name != first}
