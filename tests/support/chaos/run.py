"""Chaos test: processes are killed at random while many users talk; the state is that of an undisturbed run.

The test suite runs it with few kills. A long run: `python -m tests.support.chaos.run --kills 200 --seed 1`.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mnemon.cli.terminal.exit_code import ExitCode
from mnemon_infra.broker.connection import connect
from mnemon_infra.process.data_folder import Endpoints
from mnemon_infra.settings.store import change_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.timeouts import Timeouts
from tests.support.chaos.end_state import State, differences, settled_state
from tests.support.chaos.load import DyingUp
from tests.support.chaos.story import Story
from tests.support.processes.runner import Runner, running
from tests.support.processes.stack import Up, mnemon
from tests.support.servers.qdrant_process import QdrantProcess

TIMEOUTS = Timeouts(publish=2.0, retry=90.0, ask=10.0, save=7.0)

SETTINGS: dict[str, object] = {"mode": "online", "idle_seconds": 2, "after_messages": 10}
"""Settings of extraction with which `extract` reads the messages while users still talk."""

Death = Callable[[], Awaitable[None]]
"""Function that kills a process or a server with SIGKILL, and returns when its replacement runs."""


class Arrangement:
    """`mnemon up` with all consumers, and further processes with some of them.

    With a Qdrant server, further processes have each consumer, and the Qdrant server is killed, too.
    """

    def __init__(self, folder: Path, qdrant: QdrantProcess | None = None) -> None:
        self.environment = qdrant.environment if qdrant else {}
        self.up = Up(folder / "data")
        self._dying = DyingUp(self.up, **self.environment)
        self._qdrant = qdrant
        several = {"persist": ["persist"], "models": ["extract", "compact"]}
        if qdrant:
            several |= {"index": ["index"], "dedupe": ["dedupe", "maintain"], "retrieve": ["retrieve"]}
        self.runners = {
            name: Runner(names, folder / f"{name}.log", "--data", self.up.data, **self.environment)
            for name, names in several.items()
        }

    async def start(self) -> Endpoints:
        """Start `mnemon up`, and write the settings `SETTINGS`."""
        await self._dying.start()
        endpoints = await self.up.ready()
        connection = await connect(endpoints.nats, name="chaos")
        await change_settings(connection, lambda document: {**document, "extraction": SETTINGS})
        await connection.close()
        return endpoints

    @property
    def deaths(self) -> Mapping[str, Death]:
        return {
            "up": self._dying.killed,
            "background": self._dying.background_killed,
            "nats-server": self._dying.of_server("nats-server"),
            "postgres": self._dying.of_server("postgres"),
        } | {
            **{name: runner.killed for name, runner in self.runners.items()},
            **({"qdrant": self._qdrant.restart} if self._qdrant else {}),
        }


async def chaos(
    folder: Path, *, seed: int, users: int, steps: int, kills: int, qdrant: QdrantProcess | None = None
) -> list[str]:
    """Return the faults of a run with `kills` kills.

    These are the differences from an undisturbed run with the same `seed`, and the faults of an audit.
    `steps` is the number of actions of each user.
    """
    arrangement = Arrangement(folder, qdrant)
    try:
        await arrangement.start()
        async with running(list(arrangement.runners.values())):
            undisturbed = await _end(arrangement, "undisturbed", Story(seed, users, steps), [])
            deaths = _chosen(arrangement.deaths, seed, kills)
            disturbed = await _end(arrangement, "disturbed", Story(seed, users, steps), deaths)
            missing = await _missing(arrangement)
    finally:
        with suppress(ProcessLookupError):
            await arrangement.up.stop()
    return [*differences(undisturbed, disturbed), *missing]


async def _end(arrangement: Arrangement, tenant: str, story: Story, killed: Sequence[str]) -> State:
    """Return the final state of a tenant whose users do the story while the named processes are killed."""
    begun = time.monotonic()
    url = (await arrangement.up.ready()).nats
    await _told_while_dying(tenant, story, url, [arrangement.deaths[name] for name in killed])
    told = time.monotonic()
    print(
        f"{tenant}: {story.length:,} steps of {story.users:,} users, told in {told - begun:.1f} s", flush=True
    )
    endpoints, schema = await arrangement.up.ready(), arrangement.up.schema
    connection = await connect(endpoints.nats, name="chaos")
    try:
        found = await settled_state(
            connection, endpoints.nats, endpoints.database, schema, tenant, story.names
        )
    finally:
        await connection.close()
    print(f"  killed: {dict(Counter(killed))}; settled {time.monotonic() - told:.1f} s later", flush=True)
    return found


async def _missing(arrangement: Arrangement) -> list[str]:
    """Return the faults that `mnemon audit` reports."""
    audit = await mnemon("audit", "--data", arrangement.up.data, "--json", **arrangement.environment)
    if audit.code == ExitCode.DONE:
        print("  an audit finds nothing missing", flush=True)
        return []
    faults = (
        json.loads(audit.out)["faults"] if audit.code == ExitCode.NEGATIVE_RESULT else [audit.out + audit.err]
    )
    return [f"audit: {fault}" for fault in faults]


def _chosen(deaths: Iterable[str], seed: int, kills: int) -> list[str]:
    """Return the names of the processes to kill, in random order, each about equally often."""
    chance, names = random.Random(seed), sorted(deaths)
    chosen: list[str] = []
    while len(chosen) < kills:
        chosen += chance.sample(names, len(names))
    return chosen[:kills]


async def _told_while_dying(tenant: str, story: Story, url: str, deaths: Sequence[Death]) -> None:
    """Run the story with a kill after each chapter, a share of its steps.

    During a kill, users continue for at most half a chapter.
    """
    chapter = story.length / (len(deaths) + 1)

    async def die() -> None:
        for number, death in enumerate(deaths, 1):
            await story.allow(int((number + 0.5) * chapter))
            await story.has_done(int(number * chapter))
            await death()
        await story.allow(story.length)

    async with (
        MemoryClient.connect(url, tenant=tenant, timeouts=TIMEOUTS) as memory,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(story.told(memory))
        group.create_task(die())


async def _by_hand(seed: int, users: int, steps: int, kills: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="mnemon-chaos-"))
    folder.chmod(0o711)  # PostgreSQL's own account has to reach its data in this folder
    found = await chaos(folder, seed=seed, users=users, steps=steps, kills=kills)
    if found:
        raise SystemExit("\n".join([f"{len(found)} differences; all of it is in {folder}", *found[:50]]))
    shutil.rmtree(folder)
    print("the end is that of an undisturbed run")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2)))
    arguments.add_argument("--users", type=int, default=150)
    arguments.add_argument("--steps", type=int, default=200, help="what each user does")
    given = arguments.parse_args()
    print(f"seed {given.seed}")
    asyncio.run(_by_hand(**vars(given)))
