"""Every published example of an event or a request, handled by the real consumers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_contracts.publication import published
from mnemon_contracts.registry import EVENTS, VERBS
from mnemon_contracts.streams import DEAD
from mnemon_contracts.subjects import build_ask_subject, build_chat_subject, build_memory_subject
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from tests.contracts.test_examples import FROM_A_NEWER_BOT
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

NO_RESULT = {"not_found", "refused"}
"""Errors of a valid request for an item that the user does not have."""

OF_ANOTHER_MOMENT = {"as_of", "min_seq", "event_seq"}
"""Fields that name a log position, which the log of the test lacks."""


@pytest_asyncio.fixture
async def whole(deployment: Deployment, tmp_path: Path) -> AsyncIterator[Deployment]:
    """Run all consumers, with vectors."""
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(CONSUMERS, with_vectors):
        yield with_vectors


async def test_every_event_is_applied(stock: Stock, whole: Deployment) -> None:
    sent: dict[str, tuple[int, str]] = {}
    for event in EVENTS.values():
        for version in range(1, len(event.versions) + 1):
            name = published.name_event(event, version)
            for title, body in published.load_examples_of(name).items():
                user = f"{name}-{title}".replace(".", "-")
                if event.space == "chat":
                    subject = build_chat_subject("examples", user, None, event.name, version)
                else:
                    subject = build_memory_subject("examples", user, event.name, version)
                sent[f"{name} {title}"] = await stock.publish(subject, body), user
    assert len(sent) >= 73
    await indexed(stock, max(seq for seq, _ in sent.values()))

    outcomes = {
        example: (await stock.ask("status", f"examples.{user}", event_seq=seq))["outcome"]["outcome"]
        for example, (seq, user) in sent.items()
    }
    assert {example: outcome for example, outcome in outcomes.items() if outcome != "applied"} == {}
    assert await letters(stock.connection) == []


async def test_every_request_is_answered(stock: Stock, whole: Deployment) -> None:
    await stock.say("I keep bees", "examples.u1.-")
    for verb in VERBS.values():
        for version, contract in enumerate(verb.replies, start=1):
            for title, body in published.load_examples_of(published.name_request(verb, version)).items():
                fields = {name: value for name, value in body.items() if name not in OF_ANOTHER_MOMENT}
                answer = await stock.connection.request(
                    build_ask_subject("examples", "u1", verb.name, version),
                    json.dumps(fields).encode(),
                    timeout=60,
                )
                reply = contract.model_validate_json(answer.data)
                where = f"{verb.name} v{version} {title}: {answer.data.decode()}"
                assert reply.error is None or reply.error.code in NO_RESULT, where
                assert bool(reply.warnings) == (title == FROM_A_NEWER_BOT), where
                assert reply.model_extra is None, where


async def letters(connection: Client) -> list[Any]:
    """Return the subjects of the dead letters."""
    state = (await connection.jetstream().stream_info(DEAD, subjects_filter=">")).state
    return sorted(state.subjects or {})
