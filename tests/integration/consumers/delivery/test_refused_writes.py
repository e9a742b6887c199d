"""A database that refuses statements: consumers log the reason, and keep the work until it succeeds."""

import asyncio
from pathlib import Path

import pytest
from nats.aio.client import Client
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool
from structlog.testing import capture_logs
from structlog.typing import EventDict

from mnemon_consumers.app import run_consumers
from mnemon_contracts.subjects import build_trigger_subject
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.config import Deployment
from tests.support.stock_client import Stock

TIMEOUT = 60.0


def execute(deployment: Deployment, statement: str) -> None:
    """Run a statement in the schema of the deployment."""
    assert deployment.database_url
    engine = create_engine(deployment.database_url, poolclass=NullPool)
    with engine.connect() as connection, connection.begin():
        connection.exec_driver_sql(f'SET LOCAL search_path = "{deployment.database_schema}"')
        connection.exec_driver_sql(statement)


async def find_line(lines: list[EventDict], phrase: str) -> EventDict:
    """Wait until a line with this phrase is logged, and return it."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            for line in lines:
                if line["event"] == phrase:
                    return line
            await asyncio.sleep(0.02)


async def test_persist_logs_why_it_cannot_write_rows(
    connection: Client, stock: Stock, deployment: Deployment
) -> None:
    with capture_logs() as lines:
        async with run_consumers(("persist",), deployment):
            execute(deployment, "ALTER TABLE messages RENAME TO absent_messages")
            position = await stock.say("kept")
            line = await find_line(lines, "row write failed, retrying")
            assert (line["log_level"], line["events"]) == ("warning", 1)
            assert "run `mnemon migrate`" in line["error"]
            execute(deployment, "ALTER TABLE absent_messages RENAME TO messages")
            assert await AppliedPosition().wait_for(connection.jetstream(), position, TIMEOUT) == position


@pytest.mark.parametrize("consumer", ["persist", "index"])
async def test_failed_sweep_is_logged_with_its_reason(
    stock: Stock, deployment: Deployment, tmp_path: Path, consumer: str
) -> None:
    with_vectors = deployment.model_copy(update={"vectors_folder": tmp_path / "vectors"})
    with capture_logs() as lines:
        async with run_consumers((consumer,), with_vectors):
            for table in ("erasures", "messages"):
                execute(deployment, f"ALTER TABLE {table} RENAME TO absent_{table}")
            await stock.publish(build_trigger_subject(consumer, "acme", "u1"), b"0")
            line = await find_line(lines, "sweep failed, retrying")
            assert line["tenant"] == "acme"
            assert "run `mnemon migrate`" in line["error"]
