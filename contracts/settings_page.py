"""The page of all settings: what each is called, what it may be, and what it is where nobody has set it."""

import json
from collections.abc import Iterator
from typing import Any

from contracts.settings import SettingsV1
from contracts.settings_base import Settings
from contracts.settings_document import DEFAULTS, FOR_EVERYBODY

INTRODUCTION = f"""\
# Settings

Everything that can be set while processes run, without a restart.
[Operating](operating.md#what-can-be-set) says more of it.

    mnemon settings set recent_messages=20 limits.per_user=1000
    mnemon settings set --tenant acme limits.per_user=5000

A tenant may have any of them of its own, but for {", ".join(f"`{name}`" for name in sorted(FOR_EVERYBODY))}.
"""


def page() -> str:
    """The page, in Markdown."""
    groups = [(name, field.default, field.description) for name, field in SettingsV1.model_fields.items()]
    sections = [INTRODUCTION, _table(_rows(SettingsV1, "", deep=False))]
    for name, default, description in groups:
        if isinstance(default, Settings):
            sections.append(f"## {name}\n\n{description}\n\n{_table(_rows(type(default), f'{name}.'))}")
    return "\n".join(sections)


def _table(rows: Iterator[str]) -> str:
    return "\n".join(("| setting | default | may be | what |", "| --- | --- | --- | --- |", *rows, ""))


def _rows(group: type[Settings], prefix: str, *, deep: bool = True) -> Iterator[str]:
    schemas = group.model_json_schema()["properties"]
    for name, field in group.model_fields.items():
        if not isinstance(field.default, Settings):
            default = json.dumps(DEFAULTS[prefix + name], ensure_ascii=False)
            yield f"| `{prefix}{name}` | `{default}` | {_values(schemas[name])} | {field.description} |"
        elif deep:
            yield from _rows(type(field.default), f"{prefix}{name}.")


def _values(schema: dict[str, Any]) -> str:
    match schema:
        case {"anyOf": branches}:
            return " or ".join(_values(branch) for branch in branches)
        case {"enum": values}:
            return ", ".join(f"`{json.dumps(value)}`" for value in values)
        case {"type": "null"}:
            return "`null`"
        case {"type": "boolean"}:
            return "`true`, `false`"
        case {"type": "string"}:
            return "text"
        case {"type": "array"}:
            return "JSON, a list"
        case {"type": kind, "minimum": least, "maximum": most}:
            return f"{kind}, {least:,} to {most:,}"
        case {"type": kind, "exclusiveMinimum": least, "maximum": most}:
            return f"{kind} above {least:,}, to {most:,}"
        case {"type": kind, "minimum": least}:
            return f"{kind}, from {least:,}"
    raise ValueError(f"a setting that the page has no words for: {schema}")
