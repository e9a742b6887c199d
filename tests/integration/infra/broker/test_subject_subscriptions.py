"""Subscriptions of a `Broker` to subjects of core NATS: graceful end, and errors of handlers."""

import asyncio

from nats.aio.client import Client
from nats.aio.msg import Msg
from structlog.testing import capture_logs

from mnemon_infra.broker.broker import Broker
from mnemon_infra.config import Deployment

REQUESTS = 3


async def test_requests_that_arrived_before_the_end_are_answered(
    connection: Client, deployment: Deployment
) -> None:
    """Without a graceful end, requests that wait behind another one time out at their callers."""
    broker = Broker(deployment, "test")
    subject = f"echo.{deployment.database_schema}"
    is_handling, may_reply = asyncio.Event(), asyncio.Event()

    async def echo(message: Msg) -> None:
        is_handling.set()
        await may_reply.wait()
        await message.respond(message.data)

    broker.subscribe_subject(subject, "echo", echo)
    async with broker.connect(), asyncio.TaskGroup() as requests:
        running = broker.run()
        await running.__aenter__()
        replies = [
            requests.create_task(connection.request(subject, b"%d" % number, timeout=10))
            for number in range(REQUESTS)
        ]
        await is_handling.wait()
        await connection.flush()
        await broker.connection.flush()
        ending = requests.create_task(running.__aexit__(None, None, None))
        await asyncio.sleep(0)
        may_reply.set()
        await ending
        assert [(await reply).data for reply in replies] == [b"0", b"1", b"2"]


async def test_an_error_of_a_handler_leaves_later_messages_untouched(
    connection: Client, deployment: Deployment
) -> None:
    broker = Broker(deployment, "test")
    subject = f"echo.{deployment.database_schema}"

    async def echo(message: Msg) -> None:
        if message.data == b"bad":
            raise ValueError("a defect")
        await message.respond(message.data)

    broker.subscribe_subject(subject, "echo", echo)
    with capture_logs() as lines:
        async with broker.connect(), broker.run():
            await connection.publish(subject, b"bad")
            reply = await connection.request(subject, b"good", timeout=10)
    assert reply.data == b"good"
    assert any("a defect" in str(line) for line in lines)
