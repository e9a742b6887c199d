"""AsyncAPI 3 document of the contracts. Its operations are those of mnemon, which receives bots' messages."""

from typing import Any

from pydantic.json_schema import models_json_schema

from mnemon_contracts import streams
from mnemon_contracts.base import Contract
from mnemon_contracts.publication import published
from mnemon_contracts.publication.published import Examples
from mnemon_contracts.registry import EVENTS, VERBS, EventContract, VerbContract

RESPONDERS = "mnemon"
"""The queue group that answers requests."""

_OUTSIDE = {"bot", "importer"}
_ENCODED = (
    "An id as one NATS token: characters that NATS does not accept are percent-encoded (docs/contracts.md)."
)
_PARAMETERS = {
    "tenant": "The installation or customer. " + _ENCODED,
    "user": "The person. " + _ENCODED,
    "conversation": "The conversation; `-` is the user's current one. " + _ENCODED,
}
_TRACEPARENT = {
    "traceparent": {
        "type": "string",
        "description": "Optional. Trace that the message belongs to, in the format of W3C Trace Context.",
    }
}
_OF_EVENT = {
    "type": "object",
    "properties": {
        "Nats-Msg-Id": {
            "type": "string",
            "description": "Optional. Identity of the event; takes precedence over `id` of the body.",
        },
        **_TRACEPARENT,
    },
}
_OF_REQUEST = {"type": "object", "properties": _TRACEPARENT}
_SERVICE_ERROR = {
    "type": "object",
    "properties": {
        "Nats-Service-Error": {"type": "string", "description": "Message of the error, if there is one."},
        "Nats-Service-Error-Code": {"type": "string", "description": "Code of the error, if there is one."},
        **_TRACEPARENT,
    },
}


def build_document(examples: Examples) -> dict[str, Any]:
    """Return the AsyncAPI document of all events and verbs, with their examples."""
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    for event in EVENTS.values():
        for version, contract in enumerate(event.versions, start=1):
            name = published.name_event(event, version)
            messages[name] = _build_message(name, contract, _OF_EVENT, examples)
            channels[name] = _build_event_channel(event, name, version)
            operations |= _build_event_operations(event, name, contract)
    for verb in VERBS.values():
        for version, (request, reply) in enumerate(zip(verb.requests, verb.replies, strict=True), start=1):
            asked, answered = published.name_request(verb, version), published.name_reply(verb, version)
            messages[asked] = _build_message(asked, request, _OF_REQUEST, examples)
            messages[answered] = _build_message(answered, reply, _SERVICE_ERROR, examples)
            channels[asked] = _build_channel(f"ask.{{tenant}}.{{user}}.{verb.name}.v{version}", asked)
            channels[answered] = _build_channel(None, answered)
            operations[f"answer.{verb.name}.v{version}"] = _build_answer_operation(
                verb, asked, answered, request
            )
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "mnemon",
            "version": "1",
            "description": "Long-term memory for chat bots, on NATS JetStream. In words: docs/contracts.md.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {"local": {"host": "localhost:4222", "protocol": "nats"}},
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages, "schemas": _build_schemas()},
    }


def _build_schemas() -> dict[str, Any]:
    _, definitions = models_json_schema(
        [(contract, "validation") for contract in dict.fromkeys(published.CONTRACTS.values())],
        ref_template="#/components/schemas/{model}",
        schema_generator=published.SchemaGenerator,
    )
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas


def _build_message(
    name: str, contract: type[Contract], headers: dict[str, Any], examples: Examples
) -> dict[str, Any]:
    return {
        "name": name,
        "summary": _summarise_contract(contract),
        "payload": {"$ref": f"#/components/schemas/{contract.__name__}"},
        "examples": [{"name": published.SHOWN, "payload": published.get_typical_example(name, examples)}],
        "headers": headers,
    }


def _build_channel(address: str | None, message: str) -> dict[str, Any]:
    channel: dict[str, Any] = {
        "address": address,
        "messages": {message: {"$ref": f"#/components/messages/{message}"}},
    }
    named = {
        name: {"description": text} for name, text in _PARAMETERS.items() if f"{{{name}}}" in (address or "")
    }
    return channel | ({"parameters": named} if named else {})


def _build_event_channel(event: EventContract, name: str, version: int) -> dict[str, Any]:
    owner = "{tenant}.{user}.{conversation}" if event.space == "chat" else "{tenant}.{user}"
    return _build_channel(f"{event.space}.{owner}.{event.name}.v{version}", name) | {"x-stream": streams.LOG}


def _build_event_operations(event: EventContract, name: str, contract: type[Contract]) -> dict[str, Any]:
    actions = {
        "receive": _OUTSIDE.intersection(event.producers),
        "send": set(event.producers) - _OUTSIDE,
    }
    return {
        f"{action}.{name}": {
            "action": action,
            **_reference_channel(name),
            "summary": _summarise_contract(contract),
            "x-producers": sorted(producers),
            "x-consumers": list(event.consumers),
        }
        for action, producers in actions.items()
        if producers
    }


def _build_answer_operation(
    verb: VerbContract, request_name: str, reply_name: str, request: type[Contract]
) -> dict[str, Any]:
    return {
        "action": "receive",
        **_reference_channel(request_name),
        "summary": _summarise_contract(request),
        "bindings": {"nats": {"queue": RESPONDERS, "bindingVersion": "0.1.0"}},
        "reply": _reference_channel(reply_name),
    }


def _reference_channel(name: str) -> dict[str, Any]:
    return {
        "channel": {"$ref": f"#/channels/{name}"},
        "messages": [{"$ref": f"#/channels/{name}/messages/{name}"}],
    }


def _summarise_contract(contract: type[Contract]) -> str:
    return " ".join((contract.__doc__ or "").split())
