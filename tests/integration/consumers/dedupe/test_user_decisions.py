"""Decisions on the proposals of one user, with a real log, database and vector engine."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from nats.aio.client import Client
from numpy.typing import NDArray

from mnemon_consumers.dedupe import processor
from mnemon_consumers.dedupe.decide import derive_decision_id
from mnemon_consumers.dedupe.processor import ProposalProcessor
from mnemon_consumers.dedupe.state.user import TURN
from mnemon_consumers.dedupe.turns import FAILED
from mnemon_contracts.events.memory import FactProposedV1, FactRejectedV1
from mnemon_contracts.identity import scope_event_id
from mnemon_contracts.settings.groups import Embedding, FactLimits, SettingsV1
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_memory_subject, build_thing_filter
from mnemon_infra.broker.streams.log_reader import read_events
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.models.embedders.wordllama import WordLlama
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.vector_index import VectorIndex, open_index

ANNA, BORIS = ("acme", "anna"), ("acme", "boris")
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@dataclass
class Anna:
    """A user whose proposals are decided on call."""

    connection: Client
    vector_index: VectorIndex
    settings: LiveSettings
    deciding: ProposalProcessor
    numbers: Iterator[int] = field(default_factory=count)

    async def propose(self, *texts: str) -> int:
        """Append proposals `p0`, `p1` and so on to the log; return the position of the last one."""
        subject = build_memory_subject(*ANNA, "fact.proposed")
        proposed = [
            LogEvent(
                subject,
                FactProposedV1(text=text).encode_body(),
                scope_event_id(*ANNA, f"p{next(self.numbers)}"),
            )
            for text in texts
        ]
        return (await append_events(self.connection, proposed))[-1].seq

    async def decide(self, limits_at: datetime | None = None) -> int | None:
        return await self.deciding.decide(self.connection, ANNA, limits_at=limits_at)

    async def decided(self) -> list[str]:
        """Return the event names of the decisions in the log."""
        found = [
            address
            async for _, address, _ in read_events(self.connection, build_thing_filter(*ANNA, "fact"), 0)
        ]
        return [address.name for address in found if address.name != "fact.proposed"]


@pytest_asyncio.fixture
async def anna(connection: Client, database: Database, tmp_path: Path) -> AsyncIterator[Anna]:
    async with open_index(Deployment(vectors_folder=tmp_path / "vectors"), Embedding()) as vector_index:
        settings = LiveSettings()
        yield Anna(connection, vector_index, settings, ProposalProcessor(database, vector_index, settings))


async def test_unfinished_proposals_of_a_turn_stay_undecided(
    anna: Anna, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "TURN_SECONDS", 600)
    last = await anna.propose(*(f"Has read book number {each}" for each in range(TURN + 1)))

    waits = await anna.decide()

    assert waits == last
    assert not anna.deciding.has_decided(ANNA, last)
    assert await anna.decide() is None
    assert anna.deciding.has_decided(ANNA, last)
    assert not anna.deciding.has_decided(ANNA, last + 1_000)
    assert len(await anna.decided()) == TURN + 1


@pytest.mark.parametrize(
    ("event", "body"),
    [("fact.proposed.v1", b"no JSON"), ("fact.proposed.v1", b"{}"), ("fact.guessed.v9", b"{}")],
)
async def test_unreadable_event_blocks_no_decision(anna: Anna, event: str, body: bytes) -> None:
    await anna.propose("Keeps bees behind the house")
    await anna.connection.jetstream().publish(f"memory.acme.anna.{event}", body, stream=LOG)
    last = await anna.propose("Plays the harp in a small band")

    assert await anna.decide() is None

    assert anna.deciding.has_decided(ANNA, last)
    saved = await anna.connection.jetstream().stream_info(LOG, subjects_filter="memory.*.*.fact.saved.v1")
    assert saved.state.subjects == {"memory.acme.anna.fact.saved.v1": 2}


async def test_user_without_decisions_here_is_unknown(anna: Anna) -> None:
    assert not anna.deciding.has_decided(ANNA, 0)


async def test_decision_refused_by_the_log_stays_undecided(anna: Anna) -> None:
    """The log has another event with the decision's id: this process lacks the user's latest state."""
    last = await anna.propose("Keeps bees")
    decision = scope_event_id(*ANNA, derive_decision_id(scope_event_id(*ANNA, "p0")))
    other = FactRejectedV1(id="x", proposal_id="x", reason="other", detail="")
    await append_events(
        anna.connection,
        [LogEvent(build_memory_subject(*BORIS, "fact.rejected"), other.encode_body(), decision)],
    )

    assert await anna.decide() == FAILED

    assert await anna.decided() == []
    assert not anna.deciding.has_decided(ANNA, last)


async def test_each_text_is_embedded_once(anna: Anna, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = anna.vector_index.embedder
    assert isinstance(embedder, WordLlama)
    embedded: list[str] = []
    embed = embedder.embed

    async def counted(texts: Sequence[str]) -> NDArray[np.float32]:
        embedded.extend(texts)
        return await embed(texts)

    monkeypatch.setattr(embedder, "embed", counted)
    await anna.propose("Keeps bees behind the house", "Plays the harp in a small band")

    await anna.decide()

    assert sorted(embedded) == ["Keeps bees behind the house", "Plays the harp in a small band"]


async def test_limits_apply_after_the_last_proposal(anna: Anna) -> None:
    await anna.propose(*(f"Has read book number {each}" for each in range(10)))
    await anna.decide()
    anna.settings.value = SettingsV1(limits=FactLimits(per_user=5, profile=5, working=5))
    await anna.propose(*(f"Has read book number {each % 10}" for each in range(10, 11 + TURN)))

    assert await anna.decide(limits_at=NOW) is not None
    assert "fact.evicted" not in await anna.decided()
    assert await anna.decide(limits_at=NOW) is None
    assert (await anna.decided()).count("fact.evicted") == 5
