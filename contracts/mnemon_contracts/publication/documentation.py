"""The page for bot authors: prose from `documentation.md`, tables from the registry and the schemas."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

from mnemon_contracts import streams
from mnemon_contracts.base import BODY_LIMIT, ID_LIMIT, Event
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
        first_publish=_publish(EVENTS["message"], 1, examples),
        first_request=_request(VERBS["history"], 1, examples),
        tokens=_lines(f"| `{identifier}` | `{encode_token(identifier)}` |" for identifier in _IDS),
        events=_lines(_event_row(event) for event in EVENTS.values()),
        event_sections=_lines(
            _event_section(event, version, examples)
            for event in EVENTS.values()
            for version in range(1, len(event.versions) + 1)
        ),
        event_fields=_lines(_field_rows(_IN_EVERY_EVENT)),
        reply_fields=_lines(_field_rows(_IN_EVERY_REPLY, need=_need_of_reply)),
        verbs=_lines(_verb_row(verb) for verb in VERBS.values()),
        verb_sections=_lines(
            _verb_section(verb, version, examples)
            for verb in VERBS.values()
            for version in range(1, len(verb.requests) + 1)
        ),
        types=_lines(_type_section(name, schema) for name, schema in sorted(_shared_types().items())),
    )


def _need_of_input(field: JsonSchema, required: bool) -> str:
    if required:
        return "**required**"
    default = field.get("default")
    return f"default `{json.dumps(default)}`" if default not in (None, {}, []) else "optional"


def _need_of_reply(field: JsonSchema, required: bool) -> str:
    return "always" if required or field["default"] is not None else "if any"


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)


def _event_row(event: EventContract) -> str:
    return (
        f"| {_link(event.name, len(event.versions))} | v{len(event.versions)} | {', '.join(event.producers)} "
        f"| {', '.join(event.consumers)} | {_first_sentence(event.latest.__doc__)} |"
    )


def _event_section(event: EventContract, version: int, examples: Examples) -> str:
    schema = published.generate_schema(published.event_name(event, version))
    return f"""\
### {event.name} v{version}

{schema["description"]}

{_field_table(schema, without=_IN_EVERY_EVENT["properties"])}

```sh
{_publish(event, version, examples)}
```
"""


def _verb_row(verb: VerbContract) -> str:
    latest = len(verb.requests)
    return f"| {_link(verb.name, latest)} | v{latest} | {_text(verb.requests[-1].__doc__)} |"


def _verb_section(verb: VerbContract, version: int, examples: Examples) -> str:
    request = published.generate_schema(published.request_name(verb, version))
    reply = published.generate_schema(published.reply_name(verb, version))
    shown = published.typical_example(published.reply_name(verb, version), examples)
    return f"""\
### {verb.name} v{version}

{request["description"]}

{_field_table(request)}

```sh
{_request(verb, version, examples)}
```

Reply: {_lower_first(reply["description"])}

{_field_table(reply, without=_IN_EVERY_REPLY["properties"], need=_need_of_reply)}

```json
{json.dumps(shown, ensure_ascii=False, indent=2)}
```
"""


def _type_section(name: str, schema: JsonSchema) -> str:
    return f"""\
### {name}

{schema["description"]}

{_field_table(schema)}
"""


def _shared_types() -> dict[str, JsonSchema]:
    shared: dict[str, JsonSchema] = {}
    for name in published.CONTRACTS:
        shared |= published.generate_schema(name).get("$defs", {})
    return {name: schema for name, schema in shared.items() if "properties" in schema}


def _publish(event: EventContract, version: int, examples: Examples) -> str:
    if event.space == "chat":
        subject = build_chat_subject(_TENANT, _USER, None, event.name, version)
    else:
        subject = build_memory_subject(_TENANT, _USER, event.name, version)
    example = published.typical_example(published.event_name(event, version), examples)
    return f"nats pub {subject} {_shell(example)}"


def _request(verb: VerbContract, version: int, examples: Examples) -> str:
    subject = build_ask_subject(_TENANT, _USER, verb.name, version)
    example = published.typical_example(published.request_name(verb, version), examples)
    return f"nats req {subject} {_shell(example)}"


def _shell(body: Any) -> str:
    return shlex.quote(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def _field_table(schema: JsonSchema, without: Iterable[str] = (), need: Need = _need_of_input) -> str:
    rows = list(_field_rows(schema, without, need))
    if not rows:
        return "No fields of its own."
    return _lines(["| field | type | | meaning |", "| --- | --- | --- | --- |", *rows])


def _field_rows(
    schema: JsonSchema, without: Iterable[str] = (), need: Need = _need_of_input
) -> Iterator[str]:
    for name, field in schema["properties"].items():
        if name not in without:
            words = need(field, name in schema.get("required", []))
            yield f"| `{name}` | {_type(field)} | {words} | {field.get('description', '')} |"


def _type(schema: JsonSchema) -> str:
    """Return a type in words, such as `integer, 1 to 1000`."""
    match schema:
        case {"anyOf": branches}:
            return " or ".join(_type(branch) for branch in branches if branch != {"type": "null"})
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return "any JSON" if name == "JsonValue" else f"[{name}](#{name.lower()})"
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": "object", "additionalProperties": {"$ref": "#/$defs/JsonValue"}}:
            return "object"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object of {_type(values)}"
        case {"format": "date-time"}:
            return "time"
        case {"type": "string", "maxLength": maximum}:
            return f"string, {schema.get('minLength', 0)} to {maximum} characters"
        case {"type": kind, "minimum": minimum, "maximum": maximum} if maximum < 2**31:
            return f"{kind}, {minimum} to {maximum}"
        case {"type": kind, "minimum": minimum}:
            return f"{kind}, {minimum} or more"
    return str(schema["type"])


def _link(name: str, version: int) -> str:
    return f"[`{name}`](#{name.replace('.', '')}-v{version})"


def _text(docstring: str | None) -> str:
    return " ".join((docstring or "").split())


def _first_sentence(docstring: str | None) -> str:
    return _text(docstring).partition(". ")[0].rstrip(".") + "."


def _lower_first(text: str) -> str:
    return text[0].lower() + text[1:]
