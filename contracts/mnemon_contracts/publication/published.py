"""Published parts of the contracts: names, JSON Schemas (2020-12) and examples.

name                   schema                               examples
message.v1             schemas/message.v1.json              examples/message/v1/*.json
ask.history.v1.request schemas/ask.history.v1.request.json  examples/ask/history/v1/request/*.json
ask.history.v1.reply   schemas/ask.history.v1.reply.json    examples/ask/history/v1/reply/*.json
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from mnemon_contracts.base import Contract
from mnemon_contracts.registry import EVENTS, VERBS, EventContract, VerbContract

SCHEMAS = Path(__file__).parents[2] / "schemas"
EXAMPLES = Path(__file__).parents[2] / "examples"

SHOWN = "typical"
"""The example that stands on the page for bot authors; everything published has one of that name."""

JsonSchema: TypeAlias = dict[str, Any]
Examples: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By published name, then by the name of the example: the body."""


def event_name(event: EventContract, version: int) -> str:
    """The published name of one version of an event."""
    return f"{event.name}.v{version}"


def request_name(verb: VerbContract, version: int) -> str:
    """The published name of one version of a request."""
    return f"ask.{verb.name}.v{version}.request"


def reply_name(verb: VerbContract, version: int) -> str:
    """The published name of one version of a reply."""
    return f"ask.{verb.name}.v{version}.reply"


def _published() -> dict[str, type[Contract]]:
    published: dict[str, type[Contract]] = {}
    for event in EVENTS.values():
        for version, contract in enumerate(event.versions, start=1):
            published[event_name(event, version)] = contract
    for verb in VERBS.values():
        for version, (request, reply) in enumerate(zip(verb.requests, verb.replies, strict=True), start=1):
            published[request_name(verb, version)] = request
            published[reply_name(verb, version)] = reply
    return published


CONTRACTS: Mapping[str, type[Contract]] = MappingProxyType(_published())
"""Every version of every event, request and reply, by published name."""


class SchemaGenerator(GenerateJsonSchema):
    """pydantic's own, less what only makes noise."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles on fields: they only repeat the names."""
        return False

    def encode_default(self, dft: Any) -> Any:
        """A nested contract's default is `{}`, which a new optional field in it does not change."""
        if isinstance(dft, BaseModel):
            return dft.model_dump(mode="json", exclude_defaults=True)
        return super().encode_default(dft)


def schema_of(name: str) -> JsonSchema:
    """The JSON Schema of a contract, with its published name as `$id`."""
    schema = CONTRACTS[name].model_json_schema(schema_generator=SchemaGenerator)
    return {"$schema": SchemaGenerator.schema_dialect, "$id": f"urn:mnemon:{name}"} | schema


def example_folder(name: str) -> Path:
    """Where the examples of a contract lie."""
    if name.startswith("ask."):
        return EXAMPLES.joinpath(*name.split("."))
    return EXAMPLES.joinpath(*name.rsplit(".", 1))


def examples_of(name: str) -> dict[str, Any]:
    """The example bodies of a contract, by name.

    Raises:
        json.JSONDecodeError: an example is not JSON.
    """
    files = sorted(example_folder(name).glob("*.json"))
    return {file.stem: json.loads(file.read_bytes()) for file in files}


def examples() -> Examples:
    """The example bodies of everything published."""
    return {name: examples_of(name) for name in CONTRACTS}


def shown(name: str, examples: Examples) -> Any:
    """The example body that stands on the page.

    Raises:
        FileNotFoundError: there is none; the message says where it belongs.
    """
    try:
        return examples[name][SHOWN]
    except KeyError:
        path = example_folder(name) / f"{SHOWN}.json"
        raise FileNotFoundError(f"{path} is missing: the page for bot authors shows it") from None
