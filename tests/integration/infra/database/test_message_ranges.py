"""Visible messages of ranges, read in pages of limited bytes."""

import json
from typing import Any

import pytest

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.database.engine import Database
from mnemon_infra.database.messages import message_ranges as module
from mnemon_infra.database.messages.message_ranges import MessageRange, check_ranges, stream_messages
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery


def event(seq: int, kind: str, conversation: str | None, **body: Any) -> Delivery:
    subject = build_chat_subject("acme", "anna", conversation, kind)
    return Delivery(subject, json.dumps(body).encode(), f"e{seq}", "LOG", seq, 1, 1.8e9 + seq)


def said(seq: int, conversation: str | None, length: int = 10, **fields: Any) -> Delivery:
    return event(seq, "message", conversation, role="user", content="x" * length, **fields)


def of_range(conversation: str, from_seq: int, to_seq: int) -> MessageRange:
    return MessageRange("acme", "anna", conversation, from_seq, to_seq)


async def load_pages(database: Database, *ranges: MessageRange) -> list[tuple[int, list[int]]]:
    async with database.transaction() as connection:
        pages = stream_messages(connection, ranges)
        return [(number, [row.seq for row in rows]) async for number, rows in pages]


async def test_visible_messages_of_each_range_are_streamed(database: Database) -> None:
    events = [event(1, "started", "a"), said(2, None), said(3, "b"), event(4, "cleared", "b"), said(5, "a")]
    await write_rows(database, plan_batch([*events, said(6, "b"), said(7, None), said(8, "a")]).rows)
    # The clear makes "b" the current conversation, to which message 7 belongs.
    ranges = of_range("a", 2, 7), of_range("b", 3, 3), of_range("b", 1, 9)

    assert await load_pages(database, *ranges) == [(0, [2, 5]), (2, [6, 7])]
    assert await database.run_query(check_ranges(ranges)) == [True, False, True]
    assert await load_pages(database) == []


@pytest.mark.parametrize("conversation", [None, "a"])
async def test_pages_are_limited_in_bytes(
    database: Database, monkeypatch: pytest.MonkeyPatch, conversation: str | None
) -> None:
    monkeypatch.setattr(module, "PAGE_BYTES", 1000)
    lengths = {2: 400, 3: 400, 4: 400, 5: 5000, 6: 10, 7: 1000, 8: 300}
    events = [event(1, "started", "a"), *(said(seq, conversation, of) for seq, of in lengths.items())]
    call = {"id": "c", "name": "look", "arguments": {"at": "y" * 900}}
    events += [
        said(9, conversation, 10, metadata={"note": "y" * 900}),
        said(10, conversation, tool_calls=[call]),
    ]
    await write_rows(database, plan_batch(events).rows)

    assert await load_pages(database, of_range("a", 2, 3), of_range("a", 4, 10)) == [
        (0, [2, 3]),
        (1, [4]),
        (1, [5]),
        (1, [6]),
        (1, [7]),
        (1, [8]),
        (1, [9]),
        (1, [10]),
    ]


async def test_page_holds_several_ranges(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_BYTES", 1000)
    await write_rows(database, plan_batch([said(seq, "ab"[seq % 2], 300) for seq in range(2, 8)]).rows)

    found = await load_pages(database, of_range("a", 1, 9), of_range("b", 1, 9))

    assert found == [(0, [2, 4, 6]), (1, [3, 5, 7])]
