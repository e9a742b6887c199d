"""Stored settings: JSON objects that hold only the values that were set.

The document `default` overrides the defaults of `mnemon_contracts.settings.groups`; a tenant's document
overrides both.
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
"""A JSON object with settings and groups of settings by name. Functions return changed copies of it."""

NOTHING: Document = MappingProxyType({})
"""Document that sets no value."""

_EXAMPLE = 'Store an object such as {"recent_messages": 20}'

SHARED_GROUPS = frozenset({"embedding"})
"""Groups that a tenant cannot override, because the vectors of all tenants are in the same collections."""


def parse_document(body: bytes | None) -> Document:
    """Read a stored document; without a body, return an empty document.

    Raises:
        InvalidBody: the body is not a JSON object.
    """
    try:
        document = from_json(body, allow_inf_nan=False) if body else {}
    except ValueError as error:
        raise InvalidBody("body", f"is not JSON: {error}. {_EXAMPLE}") from error
    if not isinstance(document, dict):
        raise InvalidBody("body", f"is not a JSON object. {_EXAMPLE}")
    return document


def build_document(settings: SettingsV1) -> Document:
    """Return the document with the values that differ from the defaults."""
    return settings.model_dump(mode="json", exclude_defaults=True)


def encode_document(document: Document) -> bytes:
    """Return a document of settings as JSON in UTF-8."""
    return json.dumps(dict(document), ensure_ascii=False).encode()


def resolve_settings(default: Document, own: Document = NOTHING) -> SettingsV1:
    """Return the settings in force: the document `default`, overridden by the tenant's document `own`.

    Raises:
        InvalidBody: a value is invalid or contradicts another value, or `own` sets one of `SHARED_GROUPS`;
            `field` of the error names the value or the group.
    """
    for name in own:
        if name in SHARED_GROUPS:
            raise InvalidBody(name, "is the same for every tenant; set it without a tenant")
    return SettingsV1.parse(json.dumps(merge_documents(default, own)).encode())


def merge_documents(below: Document, above: Document) -> Document:
    """Merge two documents; where both set a value, `above` has precedence."""
    both = dict(below)
    for name, value in above.items():
        former = below.get(name)
        if isinstance(former, Mapping) and isinstance(value, Mapping):
            both[name] = merge_documents(former, value)
        else:
            both[name] = value
    return both


def flatten_document(document: Document, prefix: str = "") -> dict[str, Any]:
    """Return the values of a document by full name, such as `limits.per_user`."""
    values: dict[str, Any] = {}
    for name, value in document.items():
        full = prefix + name
        values |= flatten_document(value, f"{full}.") if isinstance(value, Mapping) else {full: value}
    return values


DEFAULTS: Mapping[str, Any] = MappingProxyType(flatten_document(SettingsV1().model_dump(mode="json")))
"""Every setting by its full name, with its default."""


def find_settings(name: str) -> list[str]:
    """Return the full names of the settings that a name means: one setting, or all settings of a group.

    Raises:
        InvalidBody: no setting has this name; the message suggests similar names, if there are any.
    """
    found = [each for each in DEFAULTS if each == name or each.startswith(f"{name}.")]
    if not found:
        near = get_close_matches(name, DEFAULTS, n=3) or [each for each in DEFAULTS if name in each][:3]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InvalidBody(name, f"is not a setting{hint}")
    return found


def set_value(document: Document, name: str, value: Any) -> Document:
    """Return a copy of the document with a value set.

    Raises:
        InvalidBody: no setting has this name, or the name is that of a group; or a list of prices names a
            model twice. Other values are not checked.
    """
    settings = find_settings(name)
    if settings != [name]:
        raise InvalidBody(name, f"is a group of settings; set one of {', '.join(settings)}")
    if name == "spending.prices" and isinstance(value, list):
        _refuse_repeated_prices(name, value)
    *groups, last = name.split(".")
    return merge_documents(
        document, reduce(lambda inner, group: {group: inner}, reversed(groups), {last: value})
    )


def _refuse_repeated_prices(name: str, prices: list[Any]) -> None:
    """Refuse two prices of one model. A stored list with two stays valid, and the first of them counts."""
    models = [each.get("model") if isinstance(each, Mapping) else None for each in prices]
    for place, model in enumerate(models):
        if isinstance(model, str) and model in models[:place]:
            raise InvalidBody(f"{name}.{place}.model", "is the model of an earlier price; keep one price")


def unset_value(document: Document, name: str) -> Document:
    """Return a copy of the document in which a setting, or each setting of a group, has no value.

    Raises:
        InvalidBody: no setting and no group has this name.
    """
    find_settings(name)
    return _remove_value(document, name.split("."))


def _remove_value(document: Document, path: list[str]) -> Document:
    first, *rest = path
    inner = document.get(first)
    if rest and isinstance(inner, Mapping) and (kept := _remove_value(inner, rest)):
        return {**document, first: kept}
    return {name: value for name, value in document.items() if name != first}
