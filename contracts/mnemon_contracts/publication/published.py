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
"""Name of the example on the page for bot authors; every published contract has an example of this name."""

JsonSchema: TypeAlias = dict[str, Any]
Examples: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Example bodies, by published name and by the name of the example."""


def name_event(event: EventContract, version: int) -> str:
    """Return the published name of one version of an event."""
    return f"{event.name}.v{version}"


def name_request(verb: VerbContract, version: int) -> str:
    """Return the published name of one version of a request."""
    return f"ask.{verb.name}.v{version}.request"


def name_reply(verb: VerbContract, version: int) -> str:
    """Return the published name of one version of a reply."""
    return f"ask.{verb.name}.v{version}.reply"


def _list_contracts() -> dict[str, type[Contract]]:
    published: dict[str, type[Contract]] = {}
    for event in EVENTS.values():
        for version, contract in enumerate(event.versions, start=1):
            published[name_event(event, version)] = contract
    for verb in VERBS.values():
        for version, (request, reply) in enumerate(zip(verb.requests, verb.replies, strict=True), start=1):
            published[name_request(verb, version)] = request
            published[name_reply(verb, version)] = reply
    return published


CONTRACTS: Mapping[str, type[Contract]] = MappingProxyType(_list_contracts())
"""Every version of every event, request and reply, by published name."""


class SchemaGenerator(GenerateJsonSchema):
    """pydantic's generator of JSON Schemas, without field titles and nested defaults."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: a title of a field would only repeat the name."""
        return False

    def encode_default(self, dft: Any) -> Any:
        """Leave default values out of a nested contract's default.

        Otherwise a new optional field of the nested contract would change the schema.
        """
        if isinstance(dft, BaseModel):
            return dft.model_dump(mode="json", exclude_defaults=True)
        return super().encode_default(dft)


def generate_schema(name: str) -> JsonSchema:
    """Return the JSON Schema of a contract, with its published name as `$id`."""
    schema = CONTRACTS[name].model_json_schema(schema_generator=SchemaGenerator)
    return {"$schema": SchemaGenerator.schema_dialect, "$id": f"urn:mnemon:{name}"} | schema


def get_example_folder(name: str) -> Path:
    """Return the folder of a contract's examples."""
    if name.startswith("ask."):
        return EXAMPLES.joinpath(*name.split("."))
    return EXAMPLES.joinpath(*name.rsplit(".", 1))


def load_examples_of(name: str) -> dict[str, Any]:
    """Read the example bodies of a contract, by name.

    Raises:
        json.JSONDecodeError: an example is not JSON.
    """
    files = sorted(get_example_folder(name).glob("*.json"))
    return {file.stem: json.loads(file.read_bytes()) for file in files}


def load_examples() -> Examples:
    """Read the example bodies of all contracts, by name of the contract.

    Raises:
        json.JSONDecodeError: an example is not JSON.
    """
    return {name: load_examples_of(name) for name in CONTRACTS}


def get_typical_example(name: str, examples: Examples) -> Any:
    """Return the example body that the page shows.

    Raises:
        FileNotFoundError: the example does not exist; the message names its path.
    """
    try:
        return examples[name][SHOWN]
    except KeyError:
        path = get_example_folder(name) / f"{SHOWN}.json"
        raise FileNotFoundError(
            f"{path} is missing: add the example, which the page for bot authors shows"
        ) from None
