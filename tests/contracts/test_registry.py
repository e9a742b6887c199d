"""Every event and verb is complete: versions, upcasters, names, descriptions."""

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.export import ROOT
from mnemon_contracts.publication import published
from mnemon_contracts.publication.published import CONTRACTS
from mnemon_contracts.registry import EVENTS, VERBS, EventContract, VerbContract
from mnemon_contracts.subjects import (
    build_ask_subject,
    build_chat_subject,
    build_memory_subject,
    parse_subject,
)
from mnemon_contracts.verbs.tools import SearchV1, SearchV2


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_an_event_has_versions_from_one_and_the_upcasters_between_them(event: EventContract) -> None:
    assert len(event.upcasters) == len(event.versions) - 1
    assert [_version(contract) for contract in event.versions] == list(range(1, len(event.versions) + 1))
    assert event.producers
    assert event.consumers


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_verb_has_a_reply_for_every_request(verb: VerbContract) -> None:
    assert len(verb.requests) == len(verb.replies)
    assert [_version(contract) for contract in verb.requests] == list(range(1, len(verb.requests) + 1))


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_the_name_of_an_event_can_stand_in_a_subject(event: EventContract) -> None:
    make = build_memory_subject if event.space == "memory" else _chat
    address = parse_subject(make("acme", "u42", event.name, len(event.versions)))
    assert (address.space, address.name, address.version) == (event.space, event.name, len(event.versions))


@pytest.mark.parametrize("name", VERBS)
def test_the_name_of_a_verb_can_stand_in_a_subject(name: str) -> None:
    assert parse_subject(build_ask_subject("acme", "u42", name)).name == name


@pytest.mark.parametrize("name", CONTRACTS)
def test_everything_published_is_described_to_the_last_field(name: str) -> None:
    schema = published.generate_schema(name)
    objects = {name: schema} | schema.get("$defs", {})
    undescribed = [
        title for title, each in objects.items() if "properties" in each and "description" not in each
    ]
    undescribed += [
        f"{title}.{field}"
        for title, each in objects.items()
        for field, its_schema in each.get("properties", {}).items()
        if "description" not in its_schema
    ]
    assert undescribed == []


def _version(contract: type[BaseModel]) -> int:
    found = re.search(r"V(\d+)$", contract.__name__)
    assert found, f"{contract.__name__} must end in its version"
    return int(found[1])


def _chat(tenant: str, user: str, event: str, version: int) -> str:
    return build_chat_subject(tenant, user, None, event, version)


@pytest.mark.parametrize(
    ("verb", "fields", "version"),
    [
        ("history", {"limit": 5}, 1),
        ("search", {"query": "tea"}, 1),
        ("search", {"query": "tea", "scope": ("messages", "documents"), "limit": 3}, 1),
        ("search", {"query": "tea", "scope": ("messages", "summaries")}, 2),
        ("search", {"query": "tea", "scope": ("long",)}, 2),
        ("search", {"query": "tea", "conversation": "c"}, 2),
        ("search", {"query": "tea", "conversation": None}, 1),
        ("get", {"id": "s1"}, 1),
        ("get", {"id": "s1", "scope": "summaries"}, 2),
        ("update", {"id": "pf_001", "query": None, "text": "Likes tea"}, 1),
        ("update", {"query": "tea", "text": "Likes tea"}, 2),
    ],
)
def test_request_has_the_first_version_with_its_fields(
    verb: str, fields: dict[str, Any], version: int
) -> None:
    contract = VERBS[verb]
    assert contract.find_oldest_version(contract.requests[-1].create_strict(**fields)) == version


def test_a_search_of_version_1_is_one_of_version_2() -> None:
    old = SearchV1.parse(b'{"query": "tea", "scope": ["messages"], "min_seq": 7, "conversation": "c"}')
    assert old.upcast() == SearchV2(query="tea", scope=("messages",), min_seq=7)
    assert old.upcast().model_fields_set == {"query", "scope", "min_seq"}
    with pytest.raises(InvalidBody, match=r"^scope: .* \(index 0\)$"):
        SearchV1.parse(b'{"query": "tea", "scope": ["summaries"]}')


def test_typescript_client_waits_for_the_same_verbs() -> None:
    text = (ROOT / "producers" / "typescript" / "src" / "client.ts").read_text(encoding="utf-8")
    (listed,) = re.findall(r"const SLOW_VERBS: .* = new Set\((.*)\);", text)
    slow = [verb.name for verb in VERBS.values() if verb.is_slow]
    assert json.loads(listed) == slow, "list the verbs with `is_slow` in SLOW_VERBS of client.ts"


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_verb_that_only_reads_takes_no_key(verb: VerbContract) -> None:
    assert not (verb.only_reads and (verb.takes_key or verb.is_slow))
