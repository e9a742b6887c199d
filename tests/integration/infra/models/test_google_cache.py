"""Instructions cached by Google, through the real SDK, against a local server that caches them too."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from mnemon_bench.provider_server.faults import HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.google.model import LIFETIME, GoogleModel, open_google
from tests.support.suites.language_model import INSTRUCTIONS, MODEL, asking, facts

CREATED, RENEWED, DELETED = "POST", "PATCH", "DELETE"


@dataclass
class Time:
    """Clock whose seconds a test sets."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest_asyncio.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest_asyncio.fixture
async def model(provider: ProviderServer, time: Time, stack: AsyncExitStack) -> GoogleModel:
    opened = open_google(MODEL, Deployment(google_url=provider.url, google_api_key="a key"), clock=time)
    return await stack.enter_async_context(opened)


def managed(provider: ProviderServer) -> list[str]:
    """Return the methods of the requests for cached contents."""
    return [request.split()[0] for request in provider.state.requests if "/cachedContents" in request]


def kept(provider: ProviderServer) -> list[str]:
    return [name for name in provider.state.files if name.startswith("cachedContents/")]


async def test_cached_instructions_are_created_once_and_deleted(
    provider: ProviderServer, model: GoogleModel, stack: AsyncExitStack
) -> None:
    await model.complete(asking("I like thing 0"))
    assert managed(provider) == []
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(model.complete(asking(f"I like thing {n}"))) for n in range(1, 20)]
    assert [facts(task.result()) for task in asked] == [[f"User likes thing {n}"] for n in range(1, 20)]
    assert {task.result().usage.cached for task in asked} == {len(INSTRUCTIONS.split())}
    assert managed(provider) == [CREATED]
    assert {question.instructions for question in provider.state.questions} == {INSTRUCTIONS}
    await stack.aclose()
    assert managed(provider) == [CREATED, DELETED]
    assert kept(provider) == []


async def test_different_instructions_have_separate_caches(
    provider: ProviderServer, model: GoogleModel
) -> None:
    other = replace(asking("I like tea"), instructions=INSTRUCTIONS[::-1])
    for request in (asking("I like tea"), other) * 3:
        await model.complete(request)
    assert managed(provider) == [CREATED, CREATED]
    assert {question.instructions for question in provider.state.questions} == {
        INSTRUCTIONS,
        INSTRUCTIONS[::-1],
    }


async def test_used_cache_is_renewed(provider: ProviderServer, model: GoogleModel, time: Time) -> None:
    for seconds in range(0, 3000, 100):
        time.now = seconds
        await model.complete(asking("I like tea"))
    assert managed(provider) == [CREATED, *[RENEWED] * 9]
    assert len(kept(provider)) == 1


async def test_rare_requests_create_no_cache(
    provider: ProviderServer, model: GoogleModel, time: Time
) -> None:
    for seconds in range(0, 6000, 600):
        time.now = seconds
        await model.complete(asking("I like tea"))
    assert managed(provider) == []


class Instructions(str):
    """Instructions that allow a weak reference, which a plain string does not."""


async def test_instructions_are_forgotten_after_their_lifetime(model: GoogleModel, time: Time) -> None:
    instructions = Instructions(INSTRUCTIONS[::-1])
    former = weakref.ref(instructions)
    await model.complete(replace(asking("I like tea"), instructions=instructions))
    del instructions
    time.now = LIFETIME
    await model.complete(asking("I like tea"))
    gc.collect()
    assert former() is None


async def test_expired_cache_is_not_deleted(
    provider: ProviderServer, model: GoogleModel, time: Time, stack: AsyncExitStack
) -> None:
    for _ in range(2):
        await model.complete(asking("I like tea"))
    time.now = LIFETIME
    await model.complete(replace(asking("I like tea"), instructions=INSTRUCTIONS[::-1]))
    await stack.aclose()
    assert managed(provider) == [CREATED]


async def test_refused_instructions_are_forgotten_after_a_day(
    provider: ProviderServer, model: GoogleModel, time: Time
) -> None:
    instructions = Instructions("Write facts down.")
    former = weakref.ref(instructions)
    for _ in range(3):
        await model.complete(replace(asking("I like tea"), instructions=instructions))
    assert managed(provider) == [CREATED]
    del instructions
    time.now = 86_400
    await model.complete(asking("I like tea"))
    gc.collect()
    assert former() is None


async def test_lost_cache_is_replaced_by_the_next_request(
    provider: ProviderServer, model: GoogleModel
) -> None:
    for _ in range(2):
        await model.complete(asking("I like tea"))
    (name,) = kept(provider)
    del provider.state.files[name]
    assert facts(await model.complete(asking("I like cocoa"))) == ["User likes cocoa"]
    assert provider.state.asked["I like cocoa"] == 1
    for _ in range(3):
        await model.complete(asking("I like tea"))
    assert managed(provider) == [CREATED, CREATED]
    assert kept(provider) != [name]


async def test_cache_lost_before_renewal_is_recreated(
    provider: ProviderServer, model: GoogleModel, time: Time
) -> None:
    for _ in range(2):
        await model.complete(asking("I like tea"))
    provider.state.files.clear()
    time.now = 400
    await model.complete(asking("I like tea"))
    assert managed(provider) == [CREATED, RENEWED, CREATED]
    assert provider.state.asked["I like tea"] == 3


async def test_refused_cache_falls_back_to_sending(
    provider: ProviderServer, model: GoogleModel, time: Time
) -> None:
    short = replace(asking("I like tea"), instructions="Write down what is said.")
    for seconds in range(0, 3000, 100):
        time.now = seconds
        assert facts(await model.complete(short)) == ["User likes tea"]
    assert managed(provider) == [CREATED]
    assert provider.state.questions[-1].instructions == "Write down what is said."


async def test_rate_limited_cache_falls_back_and_is_retried(
    provider: ProviderServer, model: GoogleModel, time: Time
) -> None:
    provider.state.faults.requests.extend([HttpFault(503, path="/cachedContents")] * 2)
    for seconds in range(0, 150, 10):
        time.now = seconds
        assert facts(await model.complete(asking("I like tea"))) == ["User likes tea"]
    assert managed(provider) == [CREATED] * 3
    assert len(kept(provider)) == 1


async def test_unrenewable_cache_is_used_until_it_expires(
    provider: ProviderServer, model: GoogleModel, time: Time
) -> None:
    for seconds in (0, 0, 400):
        time.now = seconds
        if seconds:
            provider.state.faults.requests.append(HttpFault(503, path="/cachedContents"))
        await model.complete(asking("I like tea"))
    assert managed(provider) == [CREATED, RENEWED]
    time.now = 470
    await model.complete(asking("I like tea"))
    assert managed(provider) == [CREATED, RENEWED, RENEWED]
