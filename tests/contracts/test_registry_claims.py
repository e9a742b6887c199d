"""The senders and receivers of each event in the registry are those of the code."""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mnemon.operations.memory_lines import EVENTS as IMPORTED
from mnemon_consumers.index.decide import NOTHING, plan_batch
from mnemon_contracts.publication import published
from mnemon_contracts.registry import EVENTS, EventContract
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_chat_subject, build_memory_subject
from mnemon_infra.database.projections.rows import build_row
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DURABLES

SOURCE_TREE = Path(__file__).parents[2]
ROOT = SOURCE_TREE / "consumers" / "mnemon_consumers"
PACKAGES = "producers/mnemon_producers", "consumers/mnemon_consumers", "infra/mnemon_infra", "mnemon", "bench"
OUTSIDE = {"bot", "importer", "gateway"}


def _calls(folder: Path) -> set[str]:
    """Return the names that the modules of a folder call; `Event.create_strict` counts as `Event`."""
    calls = (
        node.func
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    )
    return {ast.unparse(call).removesuffix(".create_strict") for call in calls}


@pytest.fixture(scope="module")
def calls_by_consumer() -> Mapping[str, set[str]]:
    """Names that each consumer calls. As a constant, every worker that imports this module would build it."""
    return {folder.name: _calls(folder) for folder in ROOT.iterdir() if (folder / "handler.py").exists()}


@pytest.fixture(scope="module")
def sources() -> Mapping[str, str]:
    """Text of every module outside of the contracts, by path."""
    return {
        str(path.relative_to(SOURCE_TREE)): path.read_text(encoding="utf-8")
        for package in PACKAGES
        for path in (SOURCE_TREE / package).rglob("*.py")
    }


UPCAST = [event for event in EVENTS.values() if event.upcasters]
"""Events with several versions."""

BY_A_FUNCTION = {"ModelCalledV2": "build_call_event"}
"""Event classes that consumers create through a shared function, with the function's name."""

SENDING_A_FORMER_VERSION = {"ModelCalledV1": {"consumers/mnemon_consumers/domain/spending/calls.py"}}
"""Modules that publish a former version, which processes of the former release read, by the event class."""

WITHOUT_ROW = {"fact.proposed"}
"""Events that no projection contains."""

READ_BACK = {("index", "document.added")}
"""Pairs of a consumer and an event that the consumer creates from a row and does not send."""


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_every_sender_of_an_event_is_registered(
    event: EventContract, calls_by_consumer: Mapping[str, set[str]]
) -> None:
    made_by = BY_A_FUNCTION.get(event.latest.__name__, event.latest.__name__)
    senders = {name for name, calls in calls_by_consumer.items() if made_by in calls} - {
        name for name, read in READ_BACK if read == event.name
    }
    assert set(event.producers) - OUTSIDE == senders
    assert ("importer" in event.producers) == (event.name in IMPORTED)


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_every_receiver_of_an_event_is_registered(event: EventContract) -> None:
    reacting = {
        durable.name
        for durable in DURABLES.values()
        if durable.stream == LOG and _hears(durable.filters or (">",), _subject(event))
    }
    outcomes = plan_batch([_delivery(event, body) for body in _examples(event)]).outcomes
    if all(outcome is NOTHING for outcome in outcomes):
        reacting.discard("index")
    assert reacting == set(event.consumers)


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_every_event_has_a_row(event: EventContract) -> None:
    rows = [build_row(_delivery(event, body)) for body in _examples(event)]
    assert (None not in rows) == (event.name not in WITHOUT_ROW), (
        f"`persist` writes no row of {event.latest.__name__}: add the class to `_ITEMS` in rows.py or to "
        "`project_event` in event_rows.py of infra/mnemon_infra/database/projections"
    )


@pytest.mark.parametrize("event", UPCAST, ids=[event.name for event in UPCAST])
def test_only_senders_name_a_former_version(event: EventContract, sources: Mapping[str, str]) -> None:
    for former in event.versions[:-1]:
        word = re.compile(rf"\b{former.__name__}\b")
        naming = {name for name, text in sources.items() if word.search(text)}
        assert naming == SENDING_A_FORMER_VERSION.get(former.__name__, set()), (
            f"readers get {event.latest.__name__}: name this class there; a module that has to publish "
            f"{former.__name__} belongs in SENDING_A_FORMER_VERSION"
        )


def _examples(event: EventContract) -> list[bytes]:
    name = published.name_event(event, len(event.versions))
    return [json.dumps(body).encode() for body in published.load_examples_of(name).values()]


def _subject(event: EventContract) -> str:
    if event.space == "chat":
        return build_chat_subject("acme", "u42", None, event.name, len(event.versions))
    return build_memory_subject("acme", "u42", event.name, len(event.versions))


def _delivery(event: EventContract, body: bytes) -> Delivery:
    return Delivery(_subject(event), body, "e1", LOG, 1, 1, 1.8e9)


def _hears(patterns: Sequence[str], subject: str) -> bool:
    return any(
        re.fullmatch(re.escape(pattern).replace(r"\*", "[^.]+").replace(">", ".+"), subject)
        for pattern in patterns
    )
