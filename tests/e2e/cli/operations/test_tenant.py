"""`mnemon tenant`: a tenant moves while its bot publishes, moves back, or stays."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

import pytest

from mnemon_infra.broker.connection import connect
from mnemon_infra.settings.residence import Residence, write_residence
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import TenantMoved
from mnemon_producers.timeouts import Timeouts
from tests.support.processes.stack import CommandResult, Up, mnemon
from tests.support.servers.qdrant import stack_schema
from tests.support.stock_client import Stock, indexed

TIMEOUTS = Timeouts(publish=20, ask=60)


def succeeded(result: CommandResult) -> CommandResult:
    assert result.code == 0, result.out + result.err
    return result


@asynccontextmanager
async def talking(memory: MemoryClient, user: str) -> AsyncIterator[list[str]]:
    """Publish messages until the block ends; yield the list of acknowledged texts, which grows."""
    said: list[str] = []

    async def speak() -> None:
        while True:
            text = f"message {len(said)}"
            await memory.publish(user, "user", text)
            said.append(text)
            await asyncio.sleep(0.02)  # about as fast as a person types

    task = asyncio.create_task(speak())
    try:
        yield said
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.long
async def test_tenant_moves_while_its_bot_talks_and_moves_back(shared: Up, stack: Up) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    assert shared.endpoints
    assert stack.endpoints
    there = stack.endpoints.nats
    where = ("--to", stack.data, "--to-schema", stack_schema(stack.data), "--data", shared.data)
    async with (
        MemoryClient.connect(shared.endpoints.nats, tenant=tenant, timeouts=TIMEOUTS) as old,
        MemoryClient.connect(there, tenant=tenant, timeouts=TIMEOUTS) as new,
        await connect(there, name="test") as other,
    ):
        saved = await old.save("u1", "The user's sister is called Vera.")
        await old.publish("u2", "user", "hello")
        async with talking(old, "u1") as said:
            moved = json.loads(succeeded(await mnemon("tenant", "move", tenant, *where, "--json")).out)
        with pytest.raises(TenantMoved) as refused:
            await old.history("u1")
        assert refused.value.moved_to == there
        await old.publish("u2", "user", "sent to the former deployment")

        left = await mnemon("tenant", "status", tenant, "--data", shared.data, "--json")
        assert left.code == 1
        assert json.loads(left.out)["late_events"] >= 1
        again = json.loads(succeeded(await mnemon("tenant", "move", tenant, *where, "--json")).out)
        assert again["repeated"]
        assert again["forwarded"] == json.loads(left.out)["late_events"]
        assert (await mnemon("tenant", "status", tenant, "--data", shared.data)).code == 0

        await indexed(Stock(other), 0)
        texts = [each.content for each in (await new.history("u1", limit=1000)).messages]
        assert texts[: len(said)] == said
        said = texts  # the log may have one more message, which was not acknowledged
        assert moved["rows"] >= moved["events"] - moved["forwarded"] > 0
        assert 0 < moved["pause_seconds"] < moved["seconds"]
        assert (await new.history("u2")).messages[-1].content == "sent to the former deployment"
        assert saved.id
        found = await new.get("u1", saved.id)
        assert found.fact
        assert found.fact.text == "The user's sister is called Vera."
        await new.publish("u1", "user", "said after the move")
        assert (await mnemon("audit", "--data", stack.data)).code == 0

        succeeded(await mnemon("tenant", "revert", tenant, *where, "--json"))
        with pytest.raises(TenantMoved):
            await new.history("u1")
        texts = [each.content for each in (await old.history("u1", limit=1000)).messages]
        assert texts == [*said, "said after the move"]


async def test_invalid_option_of_the_other_deployment_is_named(shared: Up) -> None:
    there = ("--to", "nats://127.0.0.1:1", "--to-database", "postgresql://127.0.0.1:1/mnemon")
    refused = await mnemon("tenant", "move", "acme", *there, "--to-schema", "Bad-Name", "--data", shared.data)
    assert (refused.code, "--to-schema is invalid" in refused.err) == (2, True)


async def test_begun_move_is_abandoned_without_the_other_deployment(shared: Up) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    abandon = ("tenant", "abandon", tenant, "--data", shared.data)
    unclear = await mnemon(*abandon)
    assert (unclear.code, "give either --to or --target-lost" in unclear.err) == (2, True)

    assert shared.endpoints
    async with await connect(shared.endpoints.nats, name="test") as connection:
        await write_residence(connection, tenant, Residence("leaving", "m1", "nats://there:4222"), 0)
    shown = await mnemon("tenant", "status", tenant, "--data", shared.data)
    assert f"{tenant}: leaving. The other deployment is nats://there:4222." in shown.out
    done = succeeded(await mnemon(*abandon, "--target-lost", "--json"))
    assert json.loads(done.out) == {"abandoned": "move", "revoked_keys": 0, "has_copy": False}
    shown = await mnemon("tenant", "status", tenant, "--data", shared.data)
    assert shown.out == f"{tenant} has not moved.\n"

    again = await mnemon(*abandon, "--target-lost")
    assert (again.code, f"no move of the tenant {tenant} has begun in" in again.err) == (2, True)
