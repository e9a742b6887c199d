"""Every contract has examples, and each is valid by the schema and by the class."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mnemon_contracts.base import Event, InvalidBody
from mnemon_contracts.decode import upcast_body
from mnemon_contracts.publication import published
from mnemon_contracts.publication.published import CONTRACTS, EXAMPLES, SCHEMAS, SHOWN
from mnemon_contracts.registry import EVENTS, EventContract

FROM_A_NEWER_BOT = "from_a_newer_bot"
"""Name of the examples with fields that the contract does not declare."""

ALL = [
    pytest.param(name, title, body, id=f"{name}-{title}")
    for name, bodies in published.load_examples().items()
    for title, body in bodies.items()
]
KNOWN_FIELDS_ONLY = [parameter for parameter in ALL if FROM_A_NEWER_BOT not in str(parameter.id)]


def test_every_contract_has_an_example_for_the_page() -> None:
    assert [name for name in CONTRACTS if SHOWN not in published.load_examples_of(name)] == []


def test_every_example_belongs_to_a_contract() -> None:
    folders = {published.get_example_folder(name) for name in CONTRACTS}
    orphans = [path for path in EXAMPLES.rglob("*") if path.is_file() and path.parent not in folders]
    assert orphans == []
    assert {path.suffix for path in EXAMPLES.rglob("*") if path.is_file()} == {".json"}


@pytest.mark.parametrize(("name", "title", "body"), ALL)
def test_an_example_satisfies_the_released_schema(name: str, title: str, body: Any) -> None:
    schema = json.loads((SCHEMAS / f"{name}.json").read_bytes())
    Draft202012Validator(schema).validate(body)


@pytest.mark.parametrize(("name", "title", "body"), ALL)
def test_example_is_unchanged_after_decoding_and_encoding(name: str, title: str, body: Any) -> None:
    contract = CONTRACTS[name]
    value = contract.parse(_wire(body))
    assert contract.parse(value.encode_body()) == value


@pytest.mark.parametrize(("name", "title", "body"), KNOWN_FIELDS_ONLY)
def test_an_example_holds_known_fields_only(name: str, title: str, body: Any) -> None:
    CONTRACTS[name].model_validate_json(_wire(body), strict=True, extra="forbid")


@pytest.mark.parametrize(("name", "title", "body"), KNOWN_FIELDS_ONLY)
def test_an_example_can_be_written_strictly(name: str, title: str, body: Any) -> None:
    contract = CONTRACTS[name]
    value = contract.parse(_wire(body))
    fields = {field: getattr(value, field) for field in value.model_fields_set}
    assert contract.create_strict(**fields) == value


@pytest.mark.parametrize(("name", "title", "body"), KNOWN_FIELDS_ONLY)
def test_unknown_fields_are_ignored_when_read_and_refused_when_written(
    name: str, title: str, body: dict[str, Any]
) -> None:
    contract = CONTRACTS[name]
    value = contract.parse(_wire(body))
    assert contract.parse(_wire(body | {"from_the_future": {"any": ["thing"]}})) == value
    fields = {field: getattr(value, field) for field in value.model_fields_set}
    with pytest.raises(InvalidBody, match="from_the_future: Extra inputs are not permitted"):
        contract.create_strict(**fields, from_the_future=1)


@pytest.mark.parametrize(("name", "title", "body"), KNOWN_FIELDS_ONLY)
def test_unknown_fields_are_named(name: str, title: str, body: dict[str, Any]) -> None:
    contract = CONTRACTS[name]
    assert contract.list_unknown_fields(_wire(body)) == ()
    assert contract.list_unknown_fields(_wire(body | {"from_the_future": {}})) == ("from_the_future",)
    assert contract.list_unknown_fields(b"") == contract.list_unknown_fields(b"[1]") == ()


@pytest.mark.parametrize(
    ("name", "title", "body"), [each for each in ALL if FROM_A_NEWER_BOT in str(each.id)]
)
def test_an_example_of_a_newer_bot_is_one(name: str, title: str, body: dict[str, Any]) -> None:
    assert body.keys() - CONTRACTS[name].model_fields.keys()


@pytest.mark.parametrize(
    ("event", "version", "body"),
    [
        pytest.param(event, version, body, id=f"{event.name}-v{version}-{title}")
        for event in EVENTS.values()
        for version in range(1, len(event.versions) + 1)
        for title, body in published.load_examples_of(published.name_event(event, version)).items()
    ],
)
def test_an_example_of_any_version_is_read_as_the_latest(
    event: EventContract, version: int, body: Any
) -> None:
    read: Event = upcast_body(event, version, _wire(body))
    assert type(read) is event.latest


def _wire(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()
