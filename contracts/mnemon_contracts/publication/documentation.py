"""The page for bot authors: prose from `documentation.md`, tables from the registry and the schemas."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

from mnemon_contracts import streams
from mnemon_contracts.base import BODY_LIMIT, ID_LIMIT, NESTING_LIMIT, Event
from mnemon_contracts.publication import published
from mnemon_contracts.publication.published import Examples, JsonSchema
from mnemon_contracts.registry import EVENTS, VERBS, EventContract, VerbContract
from mnemon_contracts.subjects import (
    build_ask_subject,
    build_chat_subject,
    build_memory_subject,
    encode_token,
)
from mnemon_contracts.verbs.ask import Reply

_TENANT, _USER = "acme", "u42"
_IDS = ("u42", "-100123456", "иван", "ivan@example.com", "ivan petrov", "room.7", "50%", "*", "-")
_IN_EVERY_EVENT = Event.model_json_schema(schema_generator=published.SchemaGenerator)
_IN_EVERY_REPLY = Reply.model_json_schema(schema_generator=published.SchemaGenerator)

Need: TypeAlias = Callable[[JsonSchema, bool], str]
"""Function that says in words whether a field is required.

Arguments are the field's schema, and whether the enclosing schema requires the field.
"""


def render_page(examples: Examples) -> str:
    """Return the page of all contracts (`docs/contracts.md`), in Markdown."""
    template = Template(Path(__file__).with_suffix(".md").read_text(encoding="utf-8"))
    return template.substitute(
        log=streams.LOG,
        dead=streams.DEAD,
        id_limit=ID_LIMIT,
        body_limit=f"{BODY_LIMIT:,}",
        nesting_limit=NESTING_LIMIT,
        first_publish=_render_publish(EVENTS["message"], 1, examples),
        first_request=_render_request(VERBS["history"], 1, examples),
        tokens=_join_lines(f"| `{identifier}` | `{encode_token(identifier)}` |" for identifier in _IDS),
        events=_join_lines(_render_event_row(event) for event in EVENTS.values()),
        event_sections=_join_lines(
            _render_event_section(event, version, examples)
            for event in EVENTS.values()
            for version in range(1, len(event.versions) + 1)
        ),
        event_fields=_join_lines(_render_field_rows(_IN_EVERY_EVENT)),
        reply_fields=_join_lines(_render_field_rows(_IN_EVERY_REPLY, need=_describe_reply_need)),
        verbs=_join_lines(_render_verb_row(verb) for verb in VERBS.values()),
        verb_sections=_join_lines(
            _render_verb_section(verb, version, examples)
            for verb in VERBS.values()
            for version in range(1, len(verb.requests) + 1)
        ),
        types=_join_lines(
            _render_type_section(name, schema) for name, schema in sorted(_list_shared_types().items())
        ),
    )


def _describe_input_need(field: JsonSchema, required: bool) -> str:
    if required:
        return "**required**"
    default = field.get("default")
    return f"default `{json.dumps(default)}`" if default not in (None, {}, []) else "optional"


def _describe_reply_need(field: JsonSchema, required: bool) -> str:
    return "always" if required or field["default"] is not None else "if any"


def _join_lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)


def _render_event_row(event: EventContract) -> str:
    return (
        f"| {_render_link(event.name, len(event.versions))} | v{len(event.versions)} "
        f"| {', '.join(event.producers)} | {', '.join(event.consumers)} "
        f"| {_take_first_sentence(event.latest.__doc__)} |"
    )


def _render_event_section(event: EventContract, version: int, examples: Examples) -> str:
    schema = published.generate_schema(published.name_event(event, version))
    return f"""\
### {event.name} v{version}

{schema["description"]}

{_render_field_table(schema, without=_IN_EVERY_EVENT["properties"])}

```sh
{_render_publish(event, version, examples)}
```
"""


def _render_verb_row(verb: VerbContract) -> str:
    latest = len(verb.requests)
    return (
        f"| {_render_link(verb.name, latest)} | v{latest} | {_unwrap_docstring(verb.requests[-1].__doc__)} |"
    )


def _render_verb_section(verb: VerbContract, version: int, examples: Examples) -> str:
    request = published.generate_schema(published.name_request(verb, version))
    reply = published.generate_schema(published.name_reply(verb, version))
    shown = published.get_typical_example(published.name_reply(verb, version), examples)
    return f"""\
### {verb.name} v{version}

{request["description"]}

{_render_field_table(request)}

```sh
{_render_request(verb, version, examples)}
```

Reply: {_lower_first(reply["description"])}

{_render_field_table(reply, without=_IN_EVERY_REPLY["properties"], need=_describe_reply_need)}

```json
{json.dumps(shown, ensure_ascii=False, indent=2)}
```
"""


def _render_type_section(name: str, schema: JsonSchema) -> str:
    return f"""\
### {name}

{schema["description"]}

{_render_field_table(schema)}
"""


def _list_shared_types() -> dict[str, JsonSchema]:
    shared: dict[str, JsonSchema] = {}
    for name in published.CONTRACTS:
        shared |= published.generate_schema(name).get("$defs", {})
    return {name: schema for name, schema in shared.items() if "properties" in schema}


def _render_publish(event: EventContract, version: int, examples: Examples) -> str:
    if event.space == "chat":
        subject = build_chat_subject(_TENANT, _USER, None, event.name, version)
    else:
        subject = build_memory_subject(_TENANT, _USER, event.name, version)
    example = published.get_typical_example(published.name_event(event, version), examples)
    return f"nats pub {subject} {_quote_body(example)}"


def _render_request(verb: VerbContract, version: int, examples: Examples) -> str:
    subject = build_ask_subject(_TENANT, _USER, verb.name, version)
    example = published.get_typical_example(published.name_request(verb, version), examples)
    return f"nats req {subject} {_quote_body(example)}"


def _quote_body(body: Any) -> str:
    return shlex.quote(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def _render_field_table(
    schema: JsonSchema, without: Iterable[str] = (), need: Need = _describe_input_need
) -> str:
    rows = list(_render_field_rows(schema, without, need))
    if not rows:
        return "No fields of its own."
    return _join_lines(["| field | type | | meaning |", "| --- | --- | --- | --- |", *rows])


def _render_field_rows(
    schema: JsonSchema, without: Iterable[str] = (), need: Need = _describe_input_need
) -> Iterator[str]:
    for name, field in schema["properties"].items():
        if name not in without:
            words = need(field, name in schema.get("required", []))
            yield f"| `{name}` | {_describe_type(field)} | {words} | {field.get('description', '')} |"


def _describe_type(schema: JsonSchema) -> str:
    """Return a type in words, such as `integer, 1 to 1000`."""
    match schema:
        case {"anyOf": branches}:
            return " or ".join(_describe_type(branch) for branch in branches if branch != {"type": "null"})
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return "any JSON" if name == "JsonValue" else f"[{name}](#{name.lower()})"
        case {"type": "array", "items": items}:
            return f"list of {_describe_type(items)}"
        case {"type": "object", "additionalProperties": {"$ref": "#/$defs/JsonValue"}}:
            return "object"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object of {_describe_type(values)}"
        case {"format": "date-time"}:
            return "time"
        case {"type": "string", "maxLength": maximum}:
            return f"string, {schema.get('minLength', 0)} to {maximum} characters"
        case {"type": kind, "minimum": minimum, "maximum": maximum} if maximum < 2**31:
            return f"{kind}, {minimum} to {maximum}"
        case {"type": kind, "minimum": minimum}:
            return f"{kind}, {minimum} or more"
    return str(schema["type"])


def _render_link(name: str, version: int) -> str:
    return f"[`{name}`](#{name.replace('.', '')}-v{version})"


def _unwrap_docstring(docstring: str | None) -> str:
    return " ".join((docstring or "").split())


def _take_first_sentence(docstring: str | None) -> str:
    return _unwrap_docstring(docstring).partition(". ")[0].rstrip(".") + "."


def _lower_first(text: str) -> str:
    return text[0].lower() + text[1:]
