"""Instructions that Google keeps: the real SDK, and a local server that keeps them as Google does."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.google.model import GoogleModel, open_google
from tests.support.suites.language_model import INSTRUCTIONS, MODEL, asking, facts

CREATED, RENEWED, DELETED = "POST", "PATCH", "DELETE"


@dataclass
class Time:
    """Seconds, as a test sets them."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
def time() -> Time:
    return Time()


@pytest_asyncio.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest_asyncio.fixture
async def model(server: ProviderServer, time: Time, stack: AsyncExitStack) -> GoogleModel:
    opened = open_google(MODEL, Deployment(google_url=server.url, google_api_key="a key"), clock=time)
    return await stack.enter_async_context(opened)


def managed(server: ProviderServer) -> list[str]:
    """What was asked about cached contents, by method."""
    return [request.split()[0] for request in server.state.requests if "/cachedContents" in request]


def kept(server: ProviderServer) -> list[str]:
    return [name for name in server.state.files if name.startswith("cachedContents/")]


async def test_they_are_created_once_used_and_deleted_in_the_end(
    server: ProviderServer, model: GoogleModel, stack: AsyncExitStack
) -> None:
    await model.complete(asking("I like thing 0"))
    assert managed(server) == []
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(model.complete(asking(f"I like thing {n}"))) for n in range(1, 20)]
    assert [facts(task.result()) for task in asked] == [[f"User likes thing {n}"] for n in range(1, 20)]
    assert {task.result().usage.cached for task in asked} == {len(INSTRUCTIONS.split())}
    assert managed(server) == [CREATED]
    assert {question.instructions for question in server.state.questions} == {INSTRUCTIONS}
    await stack.aclose()
    assert managed(server) == [CREATED, DELETED]
    assert kept(server) == []


async def test_other_instructions_are_others(server: ProviderServer, model: GoogleModel) -> None:
    other = replace(asking("I like tea"), instructions=INSTRUCTIONS[::-1])
    for request in (asking("I like tea"), other) * 3:
        await model.complete(request)
    assert managed(server) == [CREATED, CREATED]
    assert {question.instructions for question in server.state.questions} == {
        INSTRUCTIONS,
        INSTRUCTIONS[::-1],
    }


async def test_they_live_on_while_they_are_used(
    server: ProviderServer, model: GoogleModel, time: Time
) -> None:
    for seconds in range(0, 3000, 100):
        time.now = seconds
        await model.complete(asking("I like tea"))
    assert managed(server) == [CREATED, *[RENEWED] * 9]
    assert len(kept(server)) == 1


async def test_once_in_a_lifetime_is_not_worth_it(
    server: ProviderServer, model: GoogleModel, time: Time
) -> None:
    for seconds in range(0, 6000, 600):
        time.now = seconds
        await model.complete(asking("I like tea"))
    assert managed(server) == []


async def test_when_they_are_gone_the_request_is_answered_and_the_next_has_others(
    server: ProviderServer, model: GoogleModel
) -> None:
    for _ in range(2):
        await model.complete(asking("I like tea"))
    (name,) = kept(server)
    del server.state.files[name]
    assert facts(await model.complete(asking("I like cocoa"))) == ["User likes cocoa"]
    assert server.state.asked["I like cocoa"] == 1
    for _ in range(3):
        await model.complete(asking("I like tea"))
    assert managed(server) == [CREATED, CREATED]
    assert kept(server) != [name]


async def test_when_they_are_gone_before_they_are_renewed_there_are_others(
    server: ProviderServer, model: GoogleModel, time: Time
) -> None:
    for _ in range(2):
        await model.complete(asking("I like tea"))
    server.state.files.clear()
    time.now = 400
    await model.complete(asking("I like tea"))
    assert managed(server) == [CREATED, RENEWED, CREATED]
    assert server.state.asked["I like tea"] == 3


async def test_those_that_google_does_not_take_are_sent(
    server: ProviderServer, model: GoogleModel, time: Time
) -> None:
    short = replace(asking("I like tea"), instructions="Write down what is said.")
    for seconds in range(0, 3000, 100):
        time.now = seconds
        assert facts(await model.complete(short)) == ["User likes tea"]
    assert managed(server) == [CREATED]
    assert server.state.questions[-1].instructions == "Write down what is said."


async def test_when_google_has_no_time_for_them_they_are_sent_and_it_is_tried_later(
    server: ProviderServer, model: GoogleModel, time: Time
) -> None:
    server.state.faults.requests.extend([HttpFault(503, path="/cachedContents")] * 2)
    for seconds in range(0, 150, 10):
        time.now = seconds
        assert facts(await model.complete(asking("I like tea"))) == ["User likes tea"]
    assert managed(server) == [CREATED] * 3
    assert len(kept(server)) == 1


async def test_when_they_cannot_be_renewed_they_are_used_to_their_end(
    server: ProviderServer, model: GoogleModel, time: Time
) -> None:
    for seconds in (0, 0, 400):
        time.now = seconds
        if seconds:
            server.state.faults.requests.append(HttpFault(503, path="/cachedContents"))
        await model.complete(asking("I like tea"))
    assert managed(server) == [CREATED, RENEWED]
    time.now = 470
    await model.complete(asking("I like tea"))
    assert managed(server) == [CREATED, RENEWED, RENEWED]
