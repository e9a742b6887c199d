"""Live summaries: those that are not merged into another summary, of any number of stored ones."""

import json
from typing import Any

import pytest

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject, build_memory_subject
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory import summaries as module
from mnemon_infra.database.memory.summaries import load_newest_summaries, load_summaries, load_summaries_by_id
from mnemon_infra.database.memory.user_memory import NewestMessagesQuery
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from tests.integration.infra.database.test_unsummarised_messages import explained, scans, touched

ANNA = "acme", "anna"
WRITTEN = 1_666
MERGED_WITH = 5


def stored(seq: int, subject: str, **body: Any) -> Delivery:
    return Delivery(subject, json.dumps(body).encode(), f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


def a_long_conversation() -> tuple[list[Delivery], list[str]]:
    """Return the events of a conversation whose summaries were merged repeatedly, and the live ids."""
    said = build_chat_subject("acme", "anna", "c", "message")
    events = [stored(seq, said, role="user", content="hello") for seq in range(1, WRITTEN * 6 + 1)]
    live: list[str] = []
    first_of_all = 1
    for number in range(WRITTEN):
        first, last, seq = number * 6 + 1, number * 6 + 6, 100_000 + number * 2
        body = {"conversation": "c", "text": f"{number}", "to_seq": last}
        if len(live) > MERGED_WITH:
            whole = {"summary_id": f"m{number}", "merged": live, "from_seq": first_of_all, "text": "all"}
            subject = build_memory_subject("acme", "anna", "summary.merged")
            events.append(stored(seq, subject, **body | whole | {"to_seq": first - 1}))
            live = [f"m{number}"]
        subject = build_memory_subject("acme", "anna", "summary.written")
        events.append(stored(seq + 1, subject, **body, summary_id=f"s{number}", from_seq=first))
        live.append(f"s{number}")
    return events, live


async def live_ones(database: Database, limit: int) -> list[str]:
    (found,) = await database.run_query(
        load_newest_summaries([NewestMessagesQuery("acme", "anna", "c", limit)])
    )
    return [each.id for each in found]


@pytest.mark.parametrize("analysed", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_only_the_newest_summaries_of_a_long_conversation_are_read(
    database: Database, analysed: bool
) -> None:
    events, live = a_long_conversation()
    await write_rows(database, plan_batch(events).rows)

    for limit in (1, 3, 7, 100):
        assert await live_ones(database, limit) == live[-limit:]
    wanted = {"of_tenant": "acme", "of_user": "anna", "first": "f", "conversation": "c", "at_most": 3}
    async with database.transaction() as connection:
        if analysed:
            await connection.execute("ANALYZE")
        found = await explained(connection, module._NEWEST, wanted)
    # One more row: the first message of the conversation, at which the conversation begins.
    assert touched(found) <= 2 * (3 + module.SLACK) + 1
    assert scans(found) <= {"Index Scan", "Index Only Scan"}


async def test_the_summaries_of_all_conversations_are_those_of_each(database: Database) -> None:
    events, live = a_long_conversation()
    other = {"conversation": "d", "text": "other", "summary_id": "other", "from_seq": 1, "to_seq": 2}
    subject = build_memory_subject("acme", "anna", "summary.written")
    # A summary of another conversation with an equal id was not merged.
    same = other | {"summary_id": "s0"}
    await write_rows(database, plan_batch([*events, stored(200_000, subject, **other)]).rows)

    async def all_ids() -> list[str]:
        (found,) = await database.run_query(load_summaries([ANNA]))
        return [each.id for each in found]

    assert await all_ids() == [*live, "other"]
    wanted = [live[-1], "s1", "other", "unknown"]
    (some,) = await database.run_query(load_summaries_by_id([(ANNA, wanted)]))
    assert [(each.id, each.conversation) for each in some] == [(live[-1], "c"), ("other", "d")]
    await write_rows(database, plan_batch([stored(200_001, subject, **same)]).rows)
    assert await all_ids() == [*live, "other", "s0"]
    await write_rows(
        database, plan_batch([stored(200_002, build_chat_subject("acme", "anna", "c", "cleared"))]).rows
    )
    assert await all_ids() == ["other", "s0"]
    discarding = stored(200_003, build_chat_subject("acme", "anna", "d", "started"), discard_previous=True)
    await write_rows(database, plan_batch([discarding]).rows)
    assert await all_ids() == []


async def test_summaries_below_a_watermark_do_not_count(database: Database) -> None:
    events, live = a_long_conversation()
    cleared = stored(99_999, build_chat_subject("acme", "anna", "c", "cleared"))
    after = {"conversation": "c", "text": "new", "summary_id": "new", "from_seq": 100_001, "to_seq": 100_010}
    subject = build_memory_subject("acme", "anna", "summary.written")
    # Written concurrently with the clear, so that it covers cleared messages too.
    across = after | {"summary_id": "across", "from_seq": 99_998, "to_seq": 100_000}
    await write_rows(database, plan_batch(events).rows)
    assert await live_ones(database, 10) == live

    await write_rows(database, plan_batch([cleared, stored(200_000, subject, **across)]).rows)
    assert await live_ones(database, 10) == []
    await write_rows(database, plan_batch([stored(200_001, subject, **after)]).rows)
    assert await live_ones(database, 10) == ["new"]
