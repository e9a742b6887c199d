"""Outcome of a published event: applied, rejected with a reason, or waiting."""

import asyncio
from dataclasses import replace

import pytest

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, EventRejected
from tests.support.patience import PATIENT
from tests.support.stock_client import Stock

MESSAGE = "chat.acme.u1.-.message.v1"


@pytest.mark.usefixtures("mnemon")
async def test_status_tells_the_outcome_of_an_event(stock: Stock) -> None:
    applied = await stock.say("hi")
    rejected = await stock.publish(MESSAGE, {"role": "narrator", "content": "x"})
    other = await stock.publish("chat.acme.u2.-.message.v1", b"{bad")

    reply = await stock.ask("status", event_seq=applied)
    assert reply["outcome"] == {"seq": applied, "outcome": "applied"}
    reply = await stock.ask("status", event_seq=rejected)
    why = reply["outcome"]["rejected"]
    assert (reply["outcome"]["outcome"], why["seq"], why["event"]) == ("rejected", rejected, "-.message.v1")
    assert (why["reason"], "role" in why["error"]) == ("invalid_body", True)
    assert reply["rejected"] == [why]
    assert [each["seq"] for each in (await stock.ask("status", "acme.u2", min_seq=other))["rejected"]] == [
        other
    ]
    assert (await stock.ask("status", "acme.u3"))["rejected"] == []
    beyond = await stock.ask("status", event_seq=other + 1)
    assert beyond["error"]["code"] == "bad_request"
    assert "event_seq" in beyond["error"]["message"]


@pytest.mark.usefixtures("mnemon")
async def test_status_refuses_an_event_of_another_user_or_spelling(stock: Stock) -> None:
    body = {"role": "user", "content": "hi"}
    other = await stock.publish("chat.acme.u2.-.message.v1", body)
    misspelt = await stock.publish("chat.acme.a%40x.-.message.v1", body)
    for user, seq in (("acme.u1", other), ("acme.a@x", misspelt)):
        refused = await stock.ask("status", user, event_seq=seq)
        assert refused["error"]["code"] == "bad_request"
        assert f"event_seq: the event at position {seq} is not of this user" in refused["error"]["message"]
    assert (await stock.ask("status", "acme.u2", event_seq=other))["outcome"]["outcome"] == "applied"


@pytest.mark.usefixtures("mnemon")
async def test_the_newest_ten_rejected_events_are_told_newest_first(stock: Stock) -> None:
    seqs = [await stock.publish(MESSAGE, {"role": "narrator"}) for _ in range(12)]
    reply = await stock.ask("status", event_seq=seqs[0], min_seq=seqs[-1])
    assert [each["seq"] for each in reply["rejected"]] == seqs[:1:-1]
    assert reply["outcome"]["outcome"] == "rejected", "of an older one it is still known"


@pytest.mark.usefixtures("mnemon")
async def test_publish_waits_for_the_outcome(stock: Stock) -> None:
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)
    seq = await memory.publish("u1", "user", "hi", id="e1", wait=True)
    assert (await memory.outcome("u1", seq)).outcome == "applied"
    again = await memory.publish("u1", "user", "hi", id="e1", wait=True)
    assert again == seq, "a repetition is applied already"


@pytest.mark.usefixtures("mnemon")
async def test_publish_that_waits_raises_a_rejection(stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)

    async def publish(_: object) -> int:
        """Publish a body that `persist` rejects and that this version of the client would refuse to send."""
        return await stock.publish(MESSAGE, {"role": "narrator", "content": "x"})

    monkeypatch.setattr(memory._publisher, "publish", publish)
    assert await memory.publish("u1", "user", "x") == 1, "who does not wait is not told"
    with pytest.raises(EventRejected, match="role") as refused:
        await memory.publish("u1", "user", "x", wait=True)
    assert (refused.value.seq, refused.value.reason) == (2, "invalid_body")


async def test_publish_waits_longer_than_one_request_for_an_event(
    deployment: Deployment, stock: Stock
) -> None:
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)
    async with run_consumers(("retrieve",), deployment), asyncio.TaskGroup() as tasks:
        seq = await memory.publish("u1", "user", "hi", id="e1")
        repeated = tasks.create_task(memory.publish("u1", "user", "hi", id="e1", wait=True))
        for _ in range(2):  # each request waits for the event for a moment
            assert (await memory.outcome("u1", seq)).outcome == "waiting"
        async with run_consumers(("persist",), deployment):
            assert await repeated == seq


async def test_publish_goes_on_waiting_after_a_request_without_a_reply(
    deployment: Deployment, stock: Stock
) -> None:
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=replace(PATIENT, ask=0.1))
    silent = await stock.connection.subscribe("ask.acme.u1.status.v1")
    async with asyncio.TaskGroup() as tasks:
        published = tasks.create_task(memory.publish("u1", "user", "hi", wait=True))
        for _ in range(2):
            await silent.next_msg(timeout=60)
        async with run_consumers(("persist", "retrieve"), deployment):
            assert await published == 1


async def test_event_of_unknown_outcome_is_reported_as_stored(stock: Stock) -> None:
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=replace(PATIENT, ask=0.1, save=0.0))
    await stock.connection.subscribe("ask.acme.u1.status.v1")
    with pytest.raises(AskFailed, match="event 1 is stored, but not known to be applied") as unknown:
        await memory.publish("u1", "user", "hi", wait=True)
    assert (unknown.value.code, unknown.value.retryable) == ("timeout", True)


async def test_unapplied_event_is_reported_as_waiting(deployment: Deployment, stock: Stock) -> None:
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=replace(PATIENT, save=0.0))
    async with run_consumers(("retrieve",), deployment):
        with pytest.raises(AskFailed, match="is stored, but not known to be applied") as unknown:
            await memory.publish("u1", "user", "hi", wait=True)
        assert unknown.value.retryable
        seq = int(str(unknown.value).split()[2])
        async with run_consumers(("persist",), deployment), asyncio.timeout(60):
            while (await memory.outcome("u1", seq)).outcome == "waiting":
                pass  # each request waits for the event for a moment
