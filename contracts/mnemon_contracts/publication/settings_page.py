"""The page of all settings: name, default, allowed values and description of each."""

import json
from collections.abc import Iterable
from typing import Any

from mnemon_contracts.settings.document import SHARED_GROUPS
from mnemon_contracts.settings.fields import SettingField, list_groups
from mnemon_contracts.settings.presets import PRESETS

INTRODUCTION = f"""\
# Settings

Settings can change while processes run. A change applies at once, without a restart, except for
`embedding`: processes read it when they start, and another model needs `mnemon reindex`
([Another embedding model](operating.md#another-embedding-model)).
[Operating](operating.md#configuration) describes how to use them.

    mnemon settings set recent_messages=20 limits.per_user=1000
    mnemon settings set --tenant acme limits.per_user=5000

A tenant may have its own values, except for {", ".join(f"`{name}`" for name in sorted(SHARED_GROUPS))}.
"""

PRESETS_INTRODUCTION = """\
## Presets

Settings that belong together. A preset leaves other settings as they are, and never changes the embedding.

    mnemon settings preset 004 --tenant acme
"""


def render_page() -> str:
    """Return the page of all settings (`docs/settings.md`), in Markdown."""
    alone, *named = list_groups()
    sections = [INTRODUCTION, _render_table(alone.fields)]
    sections += [
        f"## {name}\n\n{description}\n\n{_render_table(fields)}" for name, description, fields in named
    ]
    return "\n".join([*sections, _render_presets()])


def _render_presets() -> str:
    rows = (
        f"| `{name}` | {each.title} "
        f"| {'<br>'.join(_render_assignment(*value) for value in each.values.items())} |"
        for name, each in PRESETS.items()
    )
    return "\n".join(
        (PRESETS_INTRODUCTION, "| preset | description | sets |", "| --- | --- | --- |", *rows, "")
    )


def _render_assignment(name: str, value: Any) -> str:
    return f"`{name}={json.dumps(value, ensure_ascii=False)}`"


def _render_table(fields: Iterable[SettingField]) -> str:
    rows = map(_render_row, fields)
    return "\n".join(("| setting | default | values | description |", "| --- | --- | --- | --- |", *rows, ""))


def _render_row(field: SettingField) -> str:
    default = json.dumps(field.default, ensure_ascii=False)
    return f"| `{field.name}` | `{default}` | {_describe_values(field.schema)} | {field.description} |"


def _describe_values(schema: dict[str, Any]) -> str:
    match schema:
        case {"anyOf": branches}:
            return " or ".join(_describe_values(branch) for branch in branches)
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
    raise ValueError(
        f"the settings page cannot describe this schema: {schema}; add the case to `_describe_values`"
    )
