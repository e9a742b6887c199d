"""Compatibility with released contracts: only new optional fields and new descriptions are allowed.

A narrower contract refuses events that are in the log already. A wider contract lets bots send events that
running readers refuse. Both changes need a new version.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_WORDS = {"$id", "$schema", "$defs", "$comment", "title", "description", "examples"}
_COMPARED_APART = {
    "anyOf",
    "type",
    "default",
    "enum",
    "properties",
    "required",
    "items",
    "additionalProperties",
}

Schema = Mapping[str, Any]


def find_breaking_changes(released: Schema, current: Schema) -> list[str]:
    """Return the changes in `current` that break users of `released`; an empty list if there are none.

    Both arguments are JSON Schemas as pydantic writes them. Each entry names a field and its change.
    """
    found = _compare_schemas("", _inline_references(released, released), _inline_references(current, current))
    return list(dict.fromkeys(found))


def _inline_references(schema: Any, root: Schema, above: tuple[str, ...] = ()) -> Any:
    """Replace each reference by its definition, except a recursive reference."""
    if isinstance(schema, list):
        return [_inline_references(item, root, above) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in above:
        definition = root["$defs"][reference.removeprefix("#/$defs/")]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {
            **_inline_references(definition, root, (*above, reference)),
            **_inline_references(beside, root, above),
        }
    return {key: _inline_references(value, root, above) for key, value in schema.items() if key != "$defs"}


def _compare_schemas(path: str, released: Schema, current: Schema) -> Iterator[str]:
    where = path or "body"
    yield from _compare_keywords(where, released, current, ["default"])
    before, after = _list_alternatives(released), _list_alternatives(current)
    for kind in before:
        if kind not in after:
            yield f"{where}: {kind} is no longer accepted"
    for kind in after:
        if kind not in before:
            yield f"{where}: {kind} is accepted too, which released readers refuse"
        else:
            yield from _compare_alternatives(path, before[kind], after[kind])


def _list_alternatives(schema: Schema) -> dict[str, Schema]:
    """Return the accepted schemas by JSON type; a second schema of the type `object` has the key
    `object 2`.
    """
    counts: Counter[str] = Counter()
    alternatives: dict[str, Schema] = {}
    for branch in _list_branches(schema):
        kind = str(branch.get("type", "any value"))
        counts[kind] += 1
        alternatives[kind if counts[kind] == 1 else f"{kind} {counts[kind]}"] = branch
    return alternatives


def _list_branches(schema: Schema) -> Iterator[Schema]:
    if "anyOf" not in schema:
        yield schema
        return
    for_each = {keyword: value for keyword, value in schema.items() if keyword not in {"anyOf", "default"}}
    for branch in schema["anyOf"]:
        yield from _list_branches({**for_each, **branch})


def _compare_alternatives(path: str, released: Schema, current: Schema) -> Iterator[str]:
    where = path or "body"
    yield from _compare_values(where, released, current)
    others = (released.keys() | current.keys()) - _WORDS - _COMPARED_APART
    yield from _compare_keywords(where, released, current, sorted(others))
    yield from _compare_fields(path, released, current)
    for keyword, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(released.get(keyword), Mapping) and isinstance(current.get(keyword), Mapping):
            yield from _compare_schemas(f"{path}{suffix}", released[keyword], current[keyword])
        else:
            yield from _compare_keywords(where, released, current, [keyword])


def _compare_values(where: str, released: Schema, current: Schema) -> Iterator[str]:
    if "enum" not in released or "enum" not in current:
        yield from _compare_keywords(where, released, current, ["enum"])
        return
    for value in released["enum"]:
        if value not in current["enum"]:
            yield f"{where}: {_format_json(value)} is no longer accepted"
    for value in current["enum"]:
        if value not in released["enum"]:
            yield f"{where}: {_format_json(value)} is accepted too, which released readers refuse"


def _compare_keywords(
    where: str, released: Schema, current: Schema, keywords: Iterable[str]
) -> Iterator[str]:
    for keyword in keywords:
        if (keyword in released, released.get(keyword)) != (keyword in current, current.get(keyword)):
            before, after = (
                _format_json(side[keyword]) if keyword in side else "absent" for side in (released, current)
            )
            yield f"{where}: {keyword} was {before}, is {after}"


def _compare_fields(path: str, released: Schema, current: Schema) -> Iterator[str]:
    before, after = released.get("properties", {}), current.get("properties", {})
    needed_before, needed_after = released.get("required", []), current.get("required", [])
    for name in {**before, **after}:
        where = f"{path}.{name}".lstrip(".")
        if name not in after:
            yield f"{where}: removed"
        elif name not in before:
            if name in needed_after:
                yield f"{where}: new, and required"
        else:
            if (name in needed_before) != (name in needed_after):
                yield f"{where}: was {_name_need(name, needed_before)}, is {_name_need(name, needed_after)}"
            yield from _compare_schemas(where, before[name], after[name])


def _name_need(name: str, required: list[str]) -> str:
    return "required" if name in required else "optional"


def _format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
