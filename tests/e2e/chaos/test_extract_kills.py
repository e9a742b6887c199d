"""Killed `extract` processes: each window is answered once, and only calls in flight are paid for twice."""

import asyncio
import json
import queue
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from nats.aio.client import Client
from pydantic import SecretStr

from mnemon_bench.provider_server.answers import ReceivedRequest
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.state import BatchLine, GeneratedAnswer, ProviderBatch, ProviderState
from mnemon_contracts.events.chat import MessageV1
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import change_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from tests.support.processes.stack import TIMEOUT
from tests.support.settings_edit import setting

pytestmark = pytest.mark.long

TENANT, MODEL = "acme", "a-model-of-our-own"
MESSAGES, WINDOW = 30, 10
"""Messages of each user, and messages in a window."""

MANY, SOME = 80, 10
"""Numbers of users: many for one wire format, so that requests, results and rows take several pages; few for
the other formats."""

PLACES = (
    "before it takes the batch",
    "before it says that it has taken the batch",
    "before it says how the batch fares",
)
"""Places where a provider with batches stops. Submission depends on the wire format, and polling does not:
one of the formats is tried with all places."""

AT_ONCE = 8
"""Calls in flight at most."""

CONSUMERS = "persist", "extract"


def windows_of(users: int) -> int:
    return users * MESSAGES // WINDOW


@dataclass
class Holding(ProviderState):
    """A provider that holds a request at each of the given stops once, until `let_go` is set.

    Attributes:
        stops: the stops, in the order in which they are reached.
        windows: number of windows that `extract` asks about.
        reached: the stops that were reached.
        let_go: set after the process that sent the request is killed.
    """

    stops: deque[str] = field(default_factory=deque)
    windows: int = 0
    reached: queue.Queue[str] = field(default_factory=queue.Queue)
    let_go: threading.Event = field(default_factory=threading.Event)

    def create_batch(self, wire: str, lines: Iterable[BatchLine], given: Mapping[str, Any]) -> ProviderBatch:
        if self._stopped("before it takes the batch"):
            raise ValueError("whoever asked is dead")
        batch = super().create_batch(wire, lines, given)
        self._stopped("before it says that it has taken the batch")
        return batch

    def poll_batch(self, batch: ProviderBatch) -> None:
        self._stopped("before it says how the batch fares")
        super().poll_batch(batch)

    def ask(self, question: ReceivedRequest) -> GeneratedAnswer:
        if len(self.questions) >= self.windows // 4:
            self._stopped("before it answers")
        answered = super().ask(question)
        if len(self.questions) >= self.windows // 2:
            self._stopped("before it says the answer")
        return answered

    def _stopped(self, place: str) -> bool:
        with self.lock:
            if not self.stops or self.stops[0] != place:
                return False
            self.stops.popleft()
        self.reached.put(place)
        self.let_go.wait(TIMEOUT)
        return True


class Extractor:
    """The consumers, in one child process that can be killed."""

    def __init__(self, deployment: Deployment, server: Holding) -> None:
        self._deployment = deployment
        self._server = server
        self._process: Process | None = None

    async def start(self) -> None:
        self._server.let_go.clear()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mnemon_bench.workers.consumers", self._deployment.to_json(), *CONSUMERS),
            stdout=PIPE,
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(TIMEOUT):
            while b"ready" not in (line := await self._process.stdout.readline()):
                assert line, "the consumers ended"

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
        self._server.let_go.set()

    async def dies(self, place: str) -> None:
        """Wait until the provider has reached a stop, kill the process and start it again."""
        assert await asyncio.to_thread(self._server.reached.get, timeout=TIMEOUT) == place
        await self.kill()
        await self.start()


async def log_of(connection: Client, event: str) -> list[dict[str, Any]]:
    """Return the events of a name, each with its user."""
    found: list[dict[str, Any]] = []
    async for page in read_event_pages(connection, f"memory.{TENANT}.*.{event}.v1", 0):
        found += [{**json.loads(each.body), "user": each.subject.split(".")[2]} for each in page]
    return found


async def becomes(deployment: Deployment, query: str, value: object) -> None:
    """Wait until the query returns the value."""
    url = deployment.database_url
    assert url is not None
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    options = f"-csearch_path={deployment.database_schema}"
    found: object = None
    async with await psycopg.AsyncConnection.connect(address, options=options, autocommit=True) as database:
        try:
            async with asyncio.timeout(TIMEOUT):
                while (found := await (await database.execute(query)).fetchone()) != (value,):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            assert found == (value,)


async def everybody_speaks(connection: Client, users: int) -> None:
    said = (
        ChatEvent(f"u{user}", MessageV1(role="user", content=f"I like thing {user}-{number}"))
        for number in range(MESSAGES)
        for user in range(users)
    )
    await MemoryClient(connection, tenant=TENANT).publish_many(said)


async def everything_is_answered_once(connection: Client, deployment: Deployment, users: int) -> None:
    wanted = windows_of(users)
    async with asyncio.timeout(TIMEOUT):
        while len(answers := await log_of(connection, "window.answered")) < wanted:
            await asyncio.sleep(0.2)
    await becomes(deployment, "SELECT count(*) FROM windows WHERE is_answered", wanted)
    windows = Counter((each["user"], each["from_seq"], each["to_seq"]) for each in answers)
    assert len(windows) == wanted
    assert set(windows.values()) == {1}
    assert {each["outcome"] for each in answers} == {"proposed"}
    facts = Counter((each["user"], each["text"]) for each in await log_of(connection, "fact.proposed"))
    assert facts == {
        (f"u{user}", f"User likes thing {user}-{number}"): 1
        for user in range(users)
        for number in range(MESSAGES)
    }


def located(deployment: Deployment, server: ProviderServer) -> Deployment:
    key = SecretStr("a-key")
    return deployment.model_copy(
        update={
            "model_url": server.openai_url,
            "anthropic_url": server.url,
            "google_url": server.url,
            "model_api_key": key,
            "anthropic_api_key": key,
            "google_api_key": key,
            "model_requests": AT_ONCE,
            "extract_seconds": 1,
            "extract_resume_seconds": 3,
        }
    )


async def settings(connection: Client, **values: Any) -> None:
    await change_settings(
        connection, setting(**{f"extraction__{name}": value for name, value in values.items()})
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("provider", "users", "places"),
    [("openai", MANY, PLACES), ("anthropic", SOME, PLACES[:2]), ("google", SOME, PLACES[:2])],
    ids=["openai", "anthropic", "google"],
)
async def test_killed_batch_extraction_answers_each_window_once(
    provider: str, users: int, places: Sequence[str], connection: Client, deployment: Deployment
) -> None:
    """Kill `extract` before the provider takes the batch, before it confirms the batch, during a request for
    the batch's state, and while results are read."""
    windows = windows_of(users)
    state = Holding(stops=deque(places), windows=windows)
    await settings(
        connection, provider=provider, model=MODEL, idle_seconds=1.0, pool_seconds=3600,
        window_messages=WINDOW, after_messages=WINDOW,
    )  # fmt: skip
    with ProviderServer(state) as server:
        extractor = Extractor(located(deployment, server), state)
        try:
            await extractor.start()
            await everybody_speaks(connection, users)
            await becomes(deployment, "SELECT count(*) FROM windows", windows)
            await settings(connection, pool_seconds=0)
            answers = await connection.subscribe(f"memory.{TENANT}.*.window.answered.v1")
            await connection.flush()
            # The provider cuts off the results until the process that reads them is dead.
            state.faults.results = "dropped"
            for place in places:
                await extractor.dies(place)
            await answers.next_msg(TIMEOUT)
            await extractor.kill()
            read = len(await log_of(connection, "window.answered"))
            state.faults.results = "whole"
            await extractor.start()
            await everything_is_answered_once(connection, deployment, users)
            await becomes(deployment, "SELECT count(*) FROM batches WHERE state = 'completed'", 1)
        finally:
            await extractor.kill()

    assert 0 < read < windows
    assert len(state.list_batches(provider)) == 1
    assert len(state.asked) == windows
    assert set(state.asked.values()) == {1}
    assert len(await log_of(connection, "model.called")) == windows
    assert len(await log_of(connection, "batch.completed")) == users


@pytest.mark.timeout(600)
async def test_killed_online_extraction_answers_each_window_once(
    connection: Client, deployment: Deployment
) -> None:
    """With a server such as Ollama: only requests that were in flight at a kill may be sent again."""
    places = ["before it answers", "before it says the answer"]
    windows = windows_of(SOME)
    state = Holding(
        stops=deque(places), windows=windows, has_batches=False, formats=frozenset({"json_object"})
    )
    await settings(
        connection, provider="openai", model=MODEL, mode="online", idle_seconds=1.0,
        window_messages=WINDOW, after_messages=WINDOW,
    )  # fmt: skip
    with ProviderServer(state) as server:
        extractor = Extractor(located(deployment, server), state)
        try:
            await extractor.start()
            await everybody_speaks(connection, SOME)
            for place in places:
                await extractor.dies(place)
            await everything_is_answered_once(connection, deployment, SOME)
        finally:
            await extractor.kill()

    assert len(state.asked) == windows
    assert sum(state.asked.values()) - windows <= len(places) * 2 * AT_ONCE
