"""Upgrades from former versions: of consumers one by one while bots publish, and of a data folder."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon_contracts.events.memory import Decision, Fact, FactProposedV1, FactSavedV1
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_infra.database.migration import find_head_revision
from mnemon_infra.process.data_folder import FOLDER_FORMAT, FolderTooNew, FolderVersion
from mnemon_infra.settings.store import change_settings
from mnemon_infra.vectors.engines import reset_vectors
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed
from tests.support.chaos.end_state import State, differences, settled_state
from tests.support.chaos.run import TIMEOUTS
from tests.support.chaos.story import Story
from tests.support.log.dead_letters import kept
from tests.support.processes.former_version import COMMITS, FormerVersion, HistoryMissing
from tests.support.processes.runner import Runner, running
from tests.support.processes.stack import TIMEOUT, Up, mnemon
from tests.support.settings_edit import setting

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

QDRANT = os.environ.get("MNEMON_QDRANT_URL")

ORDER = ("persist", "index", "dedupe", "retrieve", "maintain", "compact", "extract")
"""The order of `docs/operating.md`: readers of a new field or event are upgraded before its writers."""

EMBEDDED_ORDER = (("persist",), ("index", "dedupe", "retrieve"), ("maintain",), ("compact", "extract"))
"""The order for the embedded engine: consumers that share its process are upgraded together."""

SEED, USERS, STEPS = 3, 9, 20
TENANT = "rolled"
OTHER_TENANT, OWNER = "birds", "u1"
"""The owner of events that former versions do not know in full."""


VECTOR_DIFFERENCES = {"vectors of memories", "vectors of messages", "vectors of summaries"}
"""Collections whose points have the word weights of the former version until `mnemon reindex`."""


@pytest.fixture(params=COMMITS)
def former(request: pytest.FixtureRequest, tmp_path: Path) -> FormerVersion:
    """Return a former version of mnemon; skip the test if the history of the repository lacks it."""
    try:
        return FormerVersion(request.param, tmp_path / "former")
    except HistoryMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(params=["embedded", "server"])
def vectors(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
    """Return the variables that name the vector store."""
    if request.param == "embedded":
        return {"MNEMON_VECTORS_FOLDER": str(tmp_path / "vectors")}
    if QDRANT is None:
        pytest.skip("MNEMON_QDRANT_URL names no Qdrant server")
    return {"MNEMON_QDRANT_URL": QDRANT}


@pytest_asyncio.fixture
async def environment(
    nats_url: str, database_url: str, vectors: Mapping[str, str]
) -> AsyncIterator[dict[str, str]]:
    """Yield the variables that name all servers; delete the vectors afterwards."""
    schema = f"rolled_{uuid4().hex[:8]}"
    yield {
        "MNEMON_NATS_URL": nats_url,
        "DATABASE_URL": database_url,
        "MNEMON_DATABASE_SCHEMA": schema,
        "MNEMON_EXTRACT_SECONDS": "1",
        **vectors,
    }
    if url := vectors.get("MNEMON_QDRANT_URL"):
        await reset_vectors(Deployment(qdrant_url=url, database_schema=schema))


class RollingUpgrade:
    """Consumers of a former version that are replaced one by one while users talk.

    Args:
        former: the former version.
        environment: variables that name the servers.
        folder: folder for the logs of the processes.
    """

    def __init__(self, former: FormerVersion, environment: Mapping[str, str], folder: Path) -> None:
        self._former = former
        self._environment = environment
        self._is_embedded = "MNEMON_VECTORS_FOLDER" in environment
        groups = EMBEDDED_ORDER if self._is_embedded else tuple((name,) for name in ORDER)
        self.old: dict[tuple[str, ...], Runner] = {
            names: former.run_consumers(names, folder / f"old-{names[0]}.log", environment)
            for names in groups
        }
        self.new: dict[tuple[str, ...], Runner] = {
            names: Runner(names, folder / f"new-{names[0]}.log", **environment) for names in groups
        }

    async def prepare(self) -> None:
        """Prepare the servers with the former version."""
        for command in ("provision", "migrate"):
            done = await self._former.run(command, **self._environment)
            assert done.code == 0, done

    async def prepare_again(self) -> None:
        """Prepare the servers with this version."""
        for command in ("migrate", "provision"):
            done = await mnemon(command, **self._environment)
            assert done.code == 0, done

    def steps(self) -> Iterator[tuple[tuple[str, ...], bool]]:
        """Yield the groups of consumers in upgrade order, each with whether both versions may overlap."""
        for names in self.old:
            is_blind = self._former.version == "0.1.0" and "index" in names
            yield names, not (self._is_embedded and "index" in names) and not is_blind


async def publish_news(connection: Client, event_id: str, name: str) -> None:
    """Publish a decision with fields that former versions do not have."""
    event = FactSavedV1(
        fact_id=event_id,
        fact=Fact(text=f"Has a parrot called {name}", names=(name,)),
        decision=Decision(
            proposal_id=f"{event_id}-proposed", relation="different", evidence="no other parrot"
        ),
    )
    await append_events(
        connection,
        [LogEvent(build_memory_subject(OTHER_TENANT, OWNER, "fact.saved"), event.encode_body(), event_id)],
    )


async def propose(connection: Client, event_id: str, name: str) -> None:
    """Propose a fact with a field that former versions do not have."""
    event = FactProposedV1(text=f"Keeps a goat called {name}", names=(name,))
    await append_events(
        connection,
        [LogEvent(build_memory_subject(OTHER_TENANT, OWNER, "fact.proposed"), event.encode_body(), event_id)],
    )


async def search(memory: MemoryClient, *, preceding: Sequence[str] = ()) -> list[str]:
    """Search, and repeat the request while its error is retryable."""
    while True:
        try:
            return [hit.text for hit in (await memory.search(OWNER, "parrot", preceding=preceding)).hits]
        except AskFailed as failed:
            if not failed.retryable:
                raise
            await asyncio.sleep(0.1)


async def tell(story: Story, environment: Mapping[str, str], connection: Client, tenant: str) -> State:
    """Tell the whole story to an undisturbed tenant, and return the state after it."""
    async with MemoryClient.connect(
        environment["MNEMON_NATS_URL"], tenant=tenant, timeouts=TIMEOUTS
    ) as memory:
        await story.allow(story.length)
        await story.told(memory)
    return await settle(story, environment, connection, tenant)


def count_summaries(state: State) -> State:
    """Replace the texts of summaries, which differ between versions, by their number per user and event."""
    counts = Counter((user, event) for user, event, *_ in state["summaries"])
    return {**state, "summaries": [(*each, number) for each, number in counts.items()]}


async def find_differing_tables(environment: Mapping[str, str]) -> set[str]:
    """Return the tables and collections in which the live generation differs from a rebuild of the log."""
    verified = await mnemon("rebuild", "--verify", "--json", **environment)
    assert verified.code in {0, 1}, verified
    verdict = json.loads(verified.out)
    assert verdict["is_settled"]
    return {name for name, count in verdict["by_table"].items() if count}


async def settle(story: Story, environment: Mapping[str, str], connection: Client, tenant: str) -> State:
    servers = environment["MNEMON_NATS_URL"], environment["DATABASE_URL"]
    return await settled_state(
        connection, *servers, environment["MNEMON_DATABASE_SCHEMA"], tenant, story.names
    )


async def test_consumers_are_replaced_one_by_one_while_bots_talk(
    former: FormerVersion, environment: dict[str, str], nats_url: str, tmp_path: Path
) -> None:
    upgrade = RollingUpgrade(former, environment, tmp_path)
    await upgrade.prepare()
    connection = await connect(nats_url, name="test")
    story = Story(SEED, USERS, STEPS)
    chapter = story.length // (len(upgrade.old) + 2)
    async with AsyncExitStack() as old:
        for runner in upgrade.old.values():
            await old.enter_async_context(running([runner]))
        await change_settings(
            connection,
            setting(extraction__mode="online", extraction__idle_seconds=2, extraction__after_messages=10),
        )
        async with (
            MemoryClient.connect(nats_url, tenant=TENANT, timeouts=TIMEOUTS) as memory,
            MemoryClient.connect(nats_url, tenant=OTHER_TENANT, timeouts=TIMEOUTS) as birds,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(story.told(memory))

            async def go_on(chapters: int) -> None:
                await story.allow(chapters * chapter)
                await story.has_done(chapters * chapter)

            await go_on(1)
            await upgrade.prepare_again()
            try:
                for number, (names, is_together) in enumerate(upgrade.steps(), 2):
                    if not is_together:
                        await upgrade.old[names].stop()
                    await upgrade.new[names].start()
                    if "persist" not in names:
                        # Until here, an old `persist` may run beside the new one, and would drop fields.
                        await publish_news(connection, f"pa_{number}", f"Rio{number}")
                    await go_on(number)
                    await search(birds)
                    await upgrade.old[names].stop()
                    if "retrieve" in names:
                        await propose(connection, "pr_1", "Heidi")
                        async with asyncio.timeout(TIMEOUT):
                            while not await search(birds, preceding=["Which birds do I have?"]):
                                await asyncio.sleep(0.1)  # the event may not be indexed yet
                await story.allow(story.length)
                await story.has_done(story.length)
                rolled = await settle(story, environment, connection, TENANT)
                undisturbed = await tell(Story(SEED, USERS, STEPS), environment, connection, "undisturbed")
                assert differences(count_summaries(rolled), count_summaries(undisturbed)) == []
                assert await kept(connection) == []
                audit = await mnemon("audit", **environment)
                assert audit.code == 0, audit.out
                assert await find_differing_tables(environment) <= VECTOR_DIFFERENCES
            finally:
                await asyncio.gather(*(runner.stop() for runner in upgrade.new.values()))
    await connection.close()


async def test_data_folder_is_upgraded_and_refuses_the_former_version(
    former: FormerVersion, fresh_up: Up
) -> None:
    endpoints = await fresh_up.start("--no-admin", **former.environment)
    async with MemoryClient.connect(endpoints.nats, tenant=TENANT, timeouts=TIMEOUTS) as memory:
        fact = (await memory.save(OWNER, "Has a parrot called Rio")).id
        said = await memory.publish(OWNER, "user", "He says good morning")
        assert [each.content for each in (await memory.history(OWNER, min_seq=said)).messages]
    assert await fresh_up.stop() == 0

    endpoints = await fresh_up.start("--no-admin")
    async with MemoryClient.connect(endpoints.nats, tenant=TENANT, timeouts=TIMEOUTS) as memory:
        facts = (await memory.read(OWNER)).facts
        assert [(each.id, each.text) for each in facts] == [(fact, "Has a parrot called Rio")]
        later = await memory.publish(OWNER, "user", "And good night")
        history = await memory.history(OWNER, min_seq=later)
        assert [each.content for each in history.messages] == ["He says good morning", "And good night"]
    audit = await mnemon("audit", "--data", fresh_up.data)
    assert audit.code == 0, audit.out
    assert await fresh_up.stop() == 0

    if former.head_revision < find_head_revision():
        refused = await former.run("up", "--data", str(fresh_up.data), "--no-admin")
        assert refused.code == 3, refused
        assert "newer mnemon" in refused.err
        return
    endpoints = await fresh_up.start("--no-admin", **former.environment)
    async with MemoryClient.connect(endpoints.nats, tenant=TENANT, timeouts=TIMEOUTS) as memory:
        assert (await memory.history(OWNER, min_seq=later)).messages == history.messages
    assert await fresh_up.stop() == 0


async def test_up_refuses_folder_and_schema_of_a_newer_version(up: Up) -> None:
    await up.start("--no-admin")
    assert await up.stop() == 0
    mark = up.data / "version.json"
    written = mark.read_text()
    assert FolderVersion.read(up.data) == FolderVersion(format=FOLDER_FORMAT, mnemon=version("mnemon"))

    newer = FolderVersion(format=FOLDER_FORMAT + 1, mnemon="9.9.9").model_dump_json()
    mark.write_text(newer)
    refused = await mnemon("up", "--data", up.data)
    assert refused.code == 3
    assert str(FolderTooNew(up.data, "9.9.9", FOLDER_FORMAT + 1)) in refused.err
    assert mark.read_text() == newer

    mark.write_text(written)
    await up.start("--no-admin")
    assert await up.stop() == 0
