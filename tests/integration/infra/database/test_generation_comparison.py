"""Comparison of two generations in pages, which are limited in rows and in bytes."""

import json

import pytest

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations import comparison
from mnemon_infra.database.generations.comparison import RowKey, compare_page
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.database.tables import messages
from mnemon_infra.delivery import Delivery

SUBJECT = build_chat_subject("acme", "anna", None, "message")
MESSAGES = 20


async def list_page_sizes(database: Database) -> list[int]:
    """Compare the live generation with itself, and return the number of rows of each page."""
    sizes: list[int] = []
    after: RowKey | None = None
    while True:
        live = database.schema
        page = await database.run_query(compare_page(messages, live, live, after, MESSAGES))
        assert page.differences == []
        sizes.append(page.rows)
        after = page.last
        if after is None:
            return sizes


@pytest.mark.parametrize(
    ("page_rows", "page_bytes", "expected"),
    [(100, 10**9, [20]), (8, 10**9, [8, 8, 4]), (100, 50_000, [4, 4, 4, 4, 4, 0]), (100, 1, [1] * 20 + [0])],
)
async def test_page_of_long_messages_has_fewer_rows(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    page_rows: int,
    page_bytes: int,
    expected: list[int],
) -> None:
    monkeypatch.setattr(comparison, "PAGE", page_rows)
    monkeypatch.setattr(comparison, "PAGE_BYTES", page_bytes)
    body = {"role": "user", "content": "".join(map(chr, range(256, 5256)))}  # 13 KB
    deliveries = [
        Delivery(SUBJECT, json.dumps(body).encode(), f"e{seq:02}", "LOG", seq, 1, 1.8e9 + seq)
        for seq in range(1, MESSAGES + 1)
    ]
    await write_rows(database, plan_batch(deliveries).rows)

    assert await list_page_sizes(database) == expected
