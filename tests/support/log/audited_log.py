"""A log with an event of every kind, and the result of an audit."""

import asyncio
from dataclasses import dataclass
from typing import Any, LiteralString

from nats.aio.client import Client
from nats.js.api import StreamInfo

from mnemon.operations.audit.ledger import Audit, FaultKind
from mnemon.operations.audit.run import run_audit
from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.config import Deployment
from mnemon_infra.database.audit.events import UserSample
from mnemon_infra.database.engine import Database
from tests.support.stock_client import Stock, handled

TIMEOUT = 60.0
FACT = {"text": "User likes tea", "kind": "preference", "tier": "archive", "importance": 5}


async def list_sweeps(connection: Client) -> StreamInfo:
    """Return the triggers of sweeps that have not ended."""
    return await connection.jetstream().stream_info(WORK, subjects_filter="work.persist.>")


async def wait_until_swept(connection: Client) -> None:
    """Wait until every sweep has ended."""
    async with asyncio.timeout(TIMEOUT):
        while (await list_sweeps(connection)).state.subjects:
            await asyncio.sleep(0.02)


@dataclass(frozen=True)
class AuditedLog:
    """A deployment in which a test makes faults for an audit to find."""

    stock: Stock
    deployment: Deployment
    database: Database

    async def settled(self) -> None:
        """Wait until `persist` has handled every event that the log has now, and every sweep has ended."""
        await handled(self.stock.connection, "persist")
        await wait_until_swept(self.stock.connection)

    async def sweeps(self) -> StreamInfo:
        return await list_sweeps(self.stock.connection)

    async def found(self, every: int = 1) -> Audit:
        return await run_audit(self.stock.connection, self.database, UserSample(every), lambda *_: None)

    async def faults(self) -> list[tuple[FaultKind, int]]:
        return [(each.kind, each.seq) for each in (await self.found()).faults.named]

    async def change(self, sql: LiteralString, *values: Any) -> None:
        """Run a statement that changes exactly one row."""
        async with self.database.transaction() as connection:
            cursor = await connection.execute(sql, values)
            assert cursor.rowcount == 1

    async def decide(self, event: str, **fields: Any) -> int:
        """Publish a derived event of the user `u1`, such as `fact.saved`, and return its log position."""
        return await self.stock.publish(build_memory_subject("acme", "u1", event), fields)


async def every_kind(audited: AuditedLog) -> dict[str, int]:
    """Publish events of every kind, copies and unreadable events, and wait until they are handled.

    Returns:
        The log positions of some of the events, by a name for the test.
    """
    stock, decide = audited.stock, audited.decide
    where = {
        "said": await stock.say("hello", sent_at="2026-03-01T22:30:00.1234567+03:00", name="Анна"),
        "named": await stock.say(
            "к счастью 🙂", "acme.u1.talk", metadata={"a": [1, 1.50, None]}, tool_calls=[{"name": "t"}]
        ),
        "copied": await stock.say("once", "acme.u2.-", id="the same"),
        "poison": await stock.publish("chat.acme.u1.-.message.v1", b"not json"),
        "unknown": await stock.publish("chat.acme.u1.-.whispered.v1", {}),
        "refused": await stock.publish(
            "chat.acme.u4.-.message.v1", b'{"role":"user","content":"x","later":1e300000}'
        ),
        "no id": await stock.publish(
            "chat.acme.u4.-.message.v1", {"role": "user", "content": "x"}, Nats_Msg_Id="a\0b"
        ),
    }
    where["copy"] = await stock.say("once", "acme.u2.-", id="the same", name="again")
    await stock.publish("chat.acme.u1.-.started.v1", {})
    where["cleared"] = await stock.say("to be cleared", "acme.u1.talk")
    where["gone summary"] = await decide(
        "summary.written", summary_id="s1", conversation="talk", from_seq=1, to_seq=9, text="they talked"
    )
    await stock.publish("chat.acme.u1.talk.cleared.v1", {})
    await decide(
        "summary.merged", summary_id="s2", conversation="x", merged=["s0"], from_seq=1, to_seq=9, text="y"
    )
    where["discarded"] = await stock.say("to be discarded", "acme.u3.-")
    await stock.publish("chat.acme.u3.-.started.v1", {"discard_previous": True})
    where["profile"] = await decide(
        "profile.set", fields={"zone": "Europe/Moscow", "big": 1e30, "list": [1.5]}
    )
    where["proposed"] = await decide("fact.proposed", id="p1", text="User likes tea")
    by = {"proposal_id": "p1"}
    where["saved"] = await decide("fact.saved", id="dedupe:p1", fact_id="ar_001", fact=FACT, decision=by)
    await decide("fact.updated", fact_id="ar_001", fact=FACT, former=FACT)
    compared = {"version": "v", "other_id": "ar_001", "other_version": "o", "relation": "same"}
    await decide("fact.compared", id="compared", fact_id="ar_000", **compared)
    merged = {"merged_id": "ar_000", "relation": "same", "compared_id": "compared"}
    await decide("fact.merged", fact_id="ar_001", fact=FACT, former=FACT, **merged)
    await decide("fact.forgotten", fact_id="ar_001")
    await decide("fact.proposed", id="p2", text="Secret")
    await decide("fact.rejected", id="dedupe:p2", proposal_id="p2", reason="secret")
    where["kept fact"] = await decide(
        "fact.saved",
        fact_id="ar_002",
        fact=FACT | {"text": "User likes cake"},
        decision={"proposal_id": "old"},
    )
    await decide("fact.expired", fact_id="ar_009", expires_at="2026-01-01T00:00:00Z")
    await decide("fact.evicted", fact_id="ar_008", tier="archive", limit=1)
    await decide("task.added", task_id="t1", text="buy milk")
    await decide("task.done", task_id="t1")
    await decide("task.removed", task_id="t1")
    await decide("document.added", document_id="d1", text="long", metadata={"a": 1.0})
    await decide("document.removed", document_id="d1")
    await decide("document.added", document_id="d1", text="long again")
    read = {"conversation": "talk", "from_seq": 1, "to_seq": 2}
    for batch in ("b1", "b2", "b3"):
        of = {"batch_id": batch, "provider": "openai", "model": "m", "purpose": "extract"}
        await decide("batch.intended", **of, windows=[{**read, "tenant": "acme", "user": "u1"}])
    await decide("batch.submitted", batch_id="b1", provider_batch_id="theirs")
    await decide("batch.completed", batch_id="b1", answered=1)
    await decide("batch.failed", batch_id="b2", error="no")
    await decide(
        "window.answered", conversation="talk", from_seq=1, to_seq=2, outcome="nothing", batch_id="b1"
    )
    where["called"] = await decide(
        "model.called",
        provider="openai",
        model="m",
        purpose="extract",
        tokens={"input": 10, "cached": 4, "output": 2},
        usd=0.1 + 0.2,
    )
    await decide("model.called", provider="openai", model="m", purpose="compact", tokens={})
    await audited.settled()
    return where


async def pass_over(stock: Stock) -> None:
    """Acknowledge all events that wait for `dedupe`, without a decision."""
    jetstream = stock.connection.jetstream()
    reader = await jetstream.pull_subscribe_bind(consumer="dedupe", stream=LOG)
    pending = (await reader.consumer_info()).num_pending or 0
    for message in await reader.fetch(pending) if pending else []:
        await message.ack_sync()
