"""The AsyncAPI document is valid: its references resolve, and its examples satisfy their schemas."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from faststream.specification.asyncapi.v3_0_0.schema import ApplicationSchema
from jsonschema import Draft202012Validator

from mnemon_contracts.export import ROOT
from mnemon_contracts.publication import asyncapi, published
from mnemon_contracts.registry import EVENTS, VERBS

DOCUMENT: dict[str, Any] = json.loads((ROOT / "contracts/asyncapi.json").read_bytes())


def test_asyncapi_document_matches_the_registry() -> None:
    assert asyncapi.build_document(published.load_examples()) == DOCUMENT


def test_asyncapi_document_has_exactly_the_required_parts() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= DOCUMENT["info"].keys()
    fields = {"asyncapi", "info", "defaultContentType", "servers", "channels", "operations", "components"}
    assert DOCUMENT.keys() == fields
    assert all({"host", "protocol"} <= server.keys() for server in DOCUMENT["servers"].values())
    names = [*DOCUMENT["components"]["messages"], *DOCUMENT["components"]["schemas"]]
    assert [name for name in names if not re.fullmatch(r"[\w.-]+", name)] == []


def test_asyncapi_document_validates() -> None:
    # FastStream's model of the specification requires `pathname`, which the specification makes optional.
    servers = {name: {"pathname": "", **server} for name, server in DOCUMENT["servers"].items()}
    read = ApplicationSchema.model_validate({**DOCUMENT, "servers": servers})
    assert len(read.channels) == len(DOCUMENT["channels"])
    assert len(read.operations) == len(DOCUMENT["operations"])


def test_every_reference_resolves() -> None:
    references = list(_references(DOCUMENT))
    assert len(references) > len(DOCUMENT["operations"])
    for reference in references:
        _at(reference)


def test_every_channel_names_the_parameters_of_its_address() -> None:
    for name, channel in DOCUMENT["channels"].items():
        assert channel.keys() <= {"address", "messages", "parameters", "x-stream"}, name
        in_address = re.findall(r"{(\w+)}", channel["address"] or "")
        assert in_address == list(channel.get("parameters", {})), name


def test_every_operation_uses_messages_of_its_own_channel() -> None:
    for name, operation in DOCUMENT["operations"].items():
        assert operation["action"] in {"send", "receive"}, name
        for part in filter(None, [operation, operation.get("reply")]):
            channel = part["channel"]["$ref"]
            assert all(message["$ref"].startswith(f"{channel}/messages/") for message in part["messages"]), (
                name
            )


@pytest.mark.parametrize("name", DOCUMENT["components"]["messages"])
def test_the_examples_of_a_message_satisfy_its_payload(name: str) -> None:
    message = DOCUMENT["components"]["messages"][name]
    schema = {"components": DOCUMENT["components"], **message["payload"]}
    Draft202012Validator.check_schema(_at(message["payload"]["$ref"]))
    assert message["examples"]
    for example in message["examples"]:
        Draft202012Validator(schema).validate(example["payload"])


def test_every_event_is_received_from_outside_or_sent_by_us() -> None:
    operations = {name for name in DOCUMENT["operations"] if name.startswith(("receive.", "send."))}
    events = {
        published.name_event(event, version)
        for event in EVENTS.values()
        for version in range(1, len(event.versions) + 1)
    }
    assert {name.partition(".")[2] for name in operations} == events
    assert DOCUMENT["operations"]["receive.message.v1"]["x-consumers"] == ["persist", "index"]
    assert "send.message.v1" not in operations
    assert DOCUMENT["channels"]["message.v1"] == {
        "address": "chat.{tenant}.{user}.{conversation}.message.v1",
        "messages": {"message.v1": {"$ref": "#/components/messages/message.v1"}},
        "parameters": DOCUMENT["channels"]["message.v1"]["parameters"],
        "x-stream": "LOG",
    }


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_is_answered_by_a_queue_group_with_its_reply(name: str) -> None:
    operation = DOCUMENT["operations"][f"answer.{name}.v1"]
    assert operation["action"] == "receive"
    assert operation["bindings"]["nats"]["queue"] == asyncapi.RESPONDERS
    assert operation["reply"]["channel"] == {"$ref": f"#/channels/ask.{name}.v1.reply"}
    assert DOCUMENT["channels"][f"ask.{name}.v1.request"]["address"] == f"ask.{{tenant}}.{{user}}.{name}.v1"
    assert DOCUMENT["channels"][f"ask.{name}.v1.reply"]["address"] is None


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from _references(item)


def _at(reference: str) -> Any:
    place: Any = DOCUMENT
    for step in reference.removeprefix("#/").split("/"):
        place = place[step]
    return place
