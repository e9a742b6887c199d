"""Killed `dedupe` processes: each fact is kept once."""

import asyncio
import random
import sys
from asyncio.subprocess import PIPE, Process
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nats.aio.client import Client

from mnemon_consumers.dedupe.comparison import Likeness, NearestFact
from mnemon_consumers.dedupe.decide import Proposal, decide_proposal
from mnemon_consumers.dedupe.user_facts import UserFacts
from mnemon_contracts.events.memory import FactProposedV1
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.fact_repository import load_facts
from mnemon_infra.models.embedders.wordllama import load_word_similarity
from tests.support.facts.preset_embedder import PresetEmbedder
from tests.support.processes.dedupe_workers import WORKERS
from tests.support.processes.stack import TIMEOUT
from tests.support.servers.qdrant import URL, locate_vectors

pytestmark = pytest.mark.long

TENANT = "acme"
USERS = [f"u{number}" for number in range(20)]
THINGS = 10
WORDINGS = (
    "The user keeps a {} in the garden",
    "There is one {} that belongs to them",
    "The user keeps a {} in the garden",
    "The user keeps a {} in the garden and waters it",
)

State = dict[str, list[tuple[str, str, str, int]]]
"""Id, text, tier and importance of each fact, by user."""


def proposals() -> list[tuple[str, FactProposedV1]]:
    """Return 200 different facts of 20 users, each proposed four times, in random order."""
    mixed = [
        (user, FactProposedV1(id=f"p{number}-{wording}", text=text.format(f"thing-{number}")))
        for place, user in enumerate(USERS)
        for number in range(place * THINGS, (place + 1) * THINGS)
        for wording, text in enumerate(WORDINGS)
    ]
    random.Random(7).shuffle(mixed)
    return mixed


async def propose(connection: Client, mixed: list[tuple[str, FactProposedV1]]) -> int:
    """Publish proposals, and return the log position of the last one."""
    events = [
        LogEvent(
            build_memory_subject(TENANT, user, "fact.proposed"), event.encode_body(), f"{user}:{event.id}"
        )
        for user, event in mixed
    ]
    return (await append_events(connection, events))[-1].seq


async def as_one_worker_decides(connection: Client) -> State:
    """Decide on the proposals of the log one at a time, in order, with pure functions of `dedupe` only."""
    embedder, settings = PresetEmbedder(), SettingsV1()
    state: State = {}
    for user in USERS:
        known = UserFacts()
        async for page in read_event_pages(connection, f"memory.{TENANT}.{user}.fact.proposed.v1", 0):
            for delivery in page:
                event = FactProposedV1.parse(delivery.body)
                vectors = await embedder.embed(
                    [event.text, *(each.fact.text for each in known.facts.values())]
                )
                similar = vectors[1:] @ vectors[0]
                nearest = [
                    NearestFact(fact_id, float(similarity))
                    for fact_id, similarity in zip(known.facts, similar, strict=True)
                ]
                at = datetime.fromtimestamp(delivery.stored_at, UTC)
                proposal = Proposal(str(delivery.message_id), at, event)
                likeness = Likeness(embedder.model, embedder.thresholds, load_word_similarity())
                for _, decided in decide_proposal(proposal, known, nearest, settings, likeness):
                    known.apply(decided, str(decided.id), at)
        state[user] = sorted(
            (each.id, each.fact.text, each.fact.tier, each.fact.importance) for each in known.facts.values()
        )
    return state


async def as_stored(deployment: Deployment) -> State:
    """Return the facts in PostgreSQL, by user."""
    database = Database(deployment)
    await database.open()
    try:
        found = await database.run_query(load_facts([(TENANT, user) for user in USERS]))
    finally:
        await database.close()
    return {
        user: sorted((each.id, each.text, each.tier, each.importance) for each in facts)
        for user, facts in zip(USERS, found, strict=True)
    }


class Workers:
    """Processes of `dedupe`, each with the given number of workers. A vectors folder permits one process."""

    def __init__(self, deployment: Deployment, *sizes: int) -> None:
        url = deployment.database_url
        assert url is not None
        database = url.set(drivername="postgresql").render_as_string(hide_password=False)
        vectors = deployment.qdrant_url or str(deployment.vectors_folder)
        self._arguments = str(deployment.nats_url), database, deployment.database_schema, vectors
        self._sizes = sizes
        self._processes: list[Process] = []

    async def start(self) -> None:
        for size in self._sizes:
            process = await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-m",
                    "tests.support.processes.dedupe_workers",
                    *self._arguments,
                    str(size),
                ),
                stdout=PIPE,
            )
            self._processes.append(process)
            assert process.stdout is not None
            async with asyncio.timeout(TIMEOUT):
                while b"ready" not in (line := await process.stdout.readline()):
                    assert line, "the workers ended"

    async def kill(self) -> None:
        for process in self._processes:
            process.kill()
            await process.wait()
        self._processes.clear()


async def decide_over_three_deaths(connection: Client, deployment: Deployment, *sizes: int) -> None:
    """Kill all workers three times between proposals; the facts must equal those of one worker in order."""
    mixed = proposals()
    position = AppliedPosition("dedupe")
    quarter = len(mixed) // 4
    log = await connection.subscribe(f"memory.{TENANT}.*.fact.*.v1")
    workers = Workers(deployment, *sizes)
    await workers.start()
    try:
        for round_ in range(3):
            await propose(connection, mixed[round_ * quarter : (round_ + 1) * quarter])
            # Wait until a part of the proposals has decisions.
            for _ in range(quarter + quarter // 2):
                await log.next_msg(TIMEOUT)
            await workers.kill()
            await workers.start()
        last = await propose(connection, mixed[3 * quarter :])
        assert await position.wait_for(connection.jetstream(), last, TIMEOUT) >= last
        end = (await connection.jetstream().stream_info("LOG")).state.last_seq
        assert await AppliedPosition().wait_for(connection.jetstream(), end, TIMEOUT) >= end
        stored = await as_stored(deployment)
    finally:
        await workers.kill()

    assert stored == await as_one_worker_decides(connection)
    for user, facts in stored.items():
        assert len(facts) == THINGS, user
        by_tier: dict[str, list[int]] = {}
        for fact_id, *_ in facts:
            prefix, number = fact_id.split("_")
            by_tier.setdefault(prefix, []).append(int(number))
        assert all(sorted(numbers) == list(range(1, len(numbers) + 1)) for numbers in by_tier.values())


async def test_four_killed_workers_in_one_process_keep_each_fact_once(
    connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    """With the embedded engine: its folder belongs to one process."""
    embedded = deployment.model_copy(update={"vectors_folder": tmp_path / "vectors"})
    await decide_over_three_deaths(connection, embedded, WORKERS)


@pytest.mark.timeout(600)
@pytest.mark.skipif(URL is None, reason="MNEMON_QDRANT_URL names no Qdrant server")
async def test_four_killed_processes_keep_each_fact_once(
    connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    served = locate_vectors(deployment, tmp_path / "vectors")
    await decide_over_three_deaths(connection, served, *[1] * WORKERS)
