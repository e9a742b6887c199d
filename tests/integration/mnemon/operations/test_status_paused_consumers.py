"""Status of paused consumers, with the reason, and of consumers without a reader."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from nats.aio.client import Client

from mnemon.operations.health.report import examine_deployment
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.dead_letters.limit import PAUSE
from mnemon_infra.config import Deployment
from tests.support.stock_client import Stock


async def pause(connection: Client, seconds: float) -> None:
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    await connection.jetstream().pause_consumer(LOG, "persist", f"{until:%Y-%m-%dT%H:%M:%SZ}")


async def problem(deployment: Deployment) -> str:
    (said,) = [
        each for each in (await examine_deployment(deployment)).problems if each.startswith("persist ")
    ]
    return said


async def test_a_pause_by_hand_is_distinguished_from_one_after_dead_letters(
    connection: Client, deployment: Deployment
) -> None:
    await connection.jetstream().publish("dead.persist.chat.acme.u1.-.message.v1", b"")
    await pause(connection, 3600)
    assert "paused by hand" in await problem(deployment)
    assert "`nats consumer resume LOG persist`" in await problem(deployment)
    await pause(connection, PAUSE)
    assert "after too many dead letters" in await problem(deployment)


@pytest.mark.long
async def test_consumer_that_answers_meanwhile_has_a_reader(
    stock: Stock, connection: Client, deployment: Deployment
) -> None:
    await stock.say("hi")
    looking = asyncio.create_task(examine_deployment(deployment))
    reader = await connection.jetstream().pull_subscribe_bind(consumer="persist", stream=LOG)
    await asyncio.sleep(1)  # as a reader that is busy for one second
    (message,) = await reader.fetch(1)
    await message.nak()
    said = [each.partition(" wait for ")[2] for each in (await looking).problems if "is not running" in each]
    assert not any(each.startswith("persist,") for each in said)
    assert any(each.startswith("index,") for each in said)
