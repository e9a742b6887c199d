"""Requests repeated with their id after the duplicate window: they add nothing twice."""

from pathlib import Path
from typing import TypeVar

import pytest

from mnemon_consumers.app import run_consumers
from mnemon_contracts.base import Contract
from mnemon_contracts.streams import LOG
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import (
    DocumentReplyV1,
    DocumentV1,
    SaveReplyV1,
    SaveV1,
    TasksReplyV1,
    TasksV1,
)
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.config import Deployment
from mnemon_producers.requests import Questioner
from tests.support.patience import PATIENT
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, persisted

ReplyOfVerb = TypeVar("ReplyOfVerb", bound=Reply)

SHORTEST_WINDOW = 0.1
"""The shortest duplicate window that the server accepts, in seconds."""


async def repeat_late(
    stock: Stock, verb: str, request: Contract, expected: type[ReplyOfVerb]
) -> tuple[ReplyOfVerb, ReplyOfVerb]:
    """Send a request until the log takes its event a second time; return the first and the last reply."""
    questioner = Questioner(stock.connection, "acme", PATIENT)
    first = last = await questioner.ask("u1", verb, request, expected, request_id="r1")
    before = end = await read_log_end(stock.connection.jetstream())
    while end == before:
        last = await questioner.ask("u1", verb, request, expected, request_id="r1")
        end = await read_log_end(stock.connection.jetstream())
    await persisted(stock.connection, end)
    return first, last


@pytest.mark.long
async def test_late_repetition_adds_nothing(deployment: Deployment, stock: Stock, tmp_path: Path) -> None:
    async with run_consumers(
        ("persist", "dedupe", "retrieve"), locate_vectors(deployment, tmp_path / "vectors")
    ):
        stream_context = stock.connection.jetstream()
        config = (await stream_context.stream_info(LOG)).config
        await stream_context.update_stream(config.evolve(duplicate_window=SHORTEST_WINDOW))

        saved, again = await repeat_late(stock, "save", SaveV1(text="Prefers trains"), SaveReplyV1)
        assert (saved.decision, saved.id) == (again.decision, again.id) == ("saved", "pf_001")
        assert [fact["id"] for fact in (await stock.ask("read"))["facts"]] == ["pf_001"]

        added, known = await repeat_late(stock, "tasks", TasksV1(action="add", text="Call Bo"), TasksReplyV1)
        assert added.task_id == known.task_id
        assert len((await stock.ask("tasks"))["tasks"]) == 1

        whole = DocumentV1(action="add", text="Departures")
        one, other = await repeat_late(stock, "document", whole, DocumentReplyV1)
        assert one.document_id == other.document_id
        assert len((await stock.ask("document"))["documents"]) == 1
