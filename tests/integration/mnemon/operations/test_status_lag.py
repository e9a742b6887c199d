"""Status of consumers that lag, and of tenants that publish many events."""

import asyncio
from itertools import count

import pytest
from nats.aio.client import Client
from nats.js.api import ConsumerConfig, StorageType

from mnemon.operations.health.lag import MANY_MESSAGES, read_stream_states, sample_durables
from mnemon.operations.health.report import examine_deployment
from mnemon.operations.health.state import Health
from mnemon_consumers.app import run_consumers
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.settings.document import Document
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.stream_lists import PAGE
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import change_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from tests.support.patience import PATIENT
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock

TIMEOUT = 60.0


async def test_streams_and_durables_are_found_beyond_a_page_of_the_server(connection: Client) -> None:
    stream_context = connection.jetstream()
    for number in range(PAGE):
        name = f"A{number:03}"
        await stream_context.add_consumer(LOG, ConsumerConfig(name=name, inactive_threshold=60))
        await stream_context.add_stream(name=name, subjects=[f"other.{name}"], storage=StorageType.MEMORY)
    assert LOG in await read_stream_states(stream_context)
    assert {"persist", "index"} <= (await sample_durables(stream_context, [LOG])).infos.keys()


def meant(document: Document) -> Document:
    return setting(rates__events_per_second=1)(document)


@pytest.mark.long
async def test_lagging_consumers_and_busy_tenants_are_named(stock: Stock, deployment: Deployment) -> None:
    client = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)

    async def say(messages: int) -> int:
        said = (ChatEvent("u1", MessageV1(role="user", content=f"number {each}")) for each in range(messages))
        return (await client.publish_many(said)).last_seq

    async def say_on() -> None:
        for _ in count():
            await say(100)

    async def warned_while_saying(words: str) -> Health:
        saying = asyncio.create_task(say_on())
        try:
            async with asyncio.timeout(TIMEOUT):
                while True:
                    seen = await examine_deployment(deployment)
                    if any(words in warning for warning in seen.warnings):
                        return seen
        finally:
            saying.cancel()
            await asyncio.gather(saying, return_exceptions=True)

    quiet = await examine_deployment(deployment)
    assert quiet.broker.consumers["persist"].per_second is None
    assert quiet.warnings == ()

    await say(MANY_MESSAGES)
    async with asyncio.timeout(TIMEOUT):  # the server counts a message shortly after its acknowledgement
        while (await stock.connection.jetstream().consumer_info(LOG, "persist")).num_pending != MANY_MESSAGES:
            await asyncio.sleep(0.02)
    still = await examine_deployment(deployment)
    persist = still.broker.consumers["persist"]
    assert (persist.waiting, persist.per_second, persist.grows_per_second) == (MANY_MESSAGES, 0, 0)
    assert persist.seconds_left is None
    assert still.warnings == (), "it does not become more"

    growing = await warned_while_saying("persist falls behind: ")
    assert growing.broker.events_per_second["acme"] > 1
    assert not any("tenant acme" in warning for warning in growing.warnings), "no bound was set"

    await change_settings(stock.connection, meant, "acme")
    await warned_while_saying("above its rate of 1 ")

    async with run_consumers(["persist"], deployment):
        last = await say(1)
        assert await AppliedPosition().wait_for(stock.connection.jetstream(), last, TIMEOUT) >= last
    assert (await examine_deployment(deployment)).broker.consumers["persist"].waiting == 0
