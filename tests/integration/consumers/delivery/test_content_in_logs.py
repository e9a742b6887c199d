"""Logs of mnemon and of PostgreSQL contain no text of messages, whether these are valid or not."""

import json
import tempfile
from pathlib import Path
from uuid import uuid4

import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.embedded.postgres import Postgres
from tests.integration.consumers.delivery.test_poison import letters
from tests.support.stock_client import Stock, handled

REFUSED = (
    {"role": "otter", "content": "x"},
    {"role": "user", "content": "x", "sent_at": "otter"},
    {"role": "user", "content": "x", "tool_calls": "otter"},
    {"role": "user", "content": {"otter": 1}},
    {"role": "user", "content": "the otter \0"},
    {"role": "user", "content": "x", "metadata": {"otter": "\0"}},
    {"role": "user", "content": "x", "metadata": {"a": {"otter\0": 1}}},
    {"role": "user", "content": "x", "tool_calls": [{"name": "f", "arguments": {"otter": ["\0"]}}]},
)


@pytest.mark.long
async def test_refused_values_are_logged_nowhere(
    connection: Client, nats_url: str, stock: Stock, capsys: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory(prefix="mnemon-test-") as folder:
        server = Postgres(Path(folder), None)
        await server.start()
        try:
            deployment = Deployment(
                nats_url=nats_url, database_dsn=server.url, database_schema=f"test_{uuid4().hex[:12]}"
            )
            assert deployment.database_url is not None
            migrate_schema(deployment.database_url, deployment.database_schema)
            for body in REFUSED:
                await stock.publish("chat.acme.u1.-.message.v1", body)
            await stock.publish(
                "chat.acme.u1.-.message.v1",
                b'{"role":"user","content":"the otter","id":"otter","n":1e300000}',
            )
            await stock.publish("memory.acme.u1.fact.saved.v1", {"fact_id": "a", "fact": {"kind": "otter"}})
            await stock.publish("memory.acme.u1.profile.set.v1", b'{"fields":{"otter":1e400}}')
            async with run_consumers(("persist",), deployment):
                await handled(connection, "persist")
        finally:
            await server.stop()
        assert len(await letters(connection)) == len(REFUSED) + 3
        said = capsys.readouterr()
        assert "dead letter" in said.out + said.err
        assert "otter" not in said.out + said.err
        logs = [each.read_text() for each in Path(folder).rglob("*.log")]
        assert logs
        assert not any("otter" in each for each in logs)
        headers = [json.dumps(dict(each.headers or {})) for each in await letters(connection)]
        assert not any("otter" in each for each in headers)
