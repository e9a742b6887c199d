"""`mnemon audit` beside running consumers: its output and exit codes."""

import json
from pathlib import Path

import psycopg

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from tests.support.processes.stack import mnemon
from tests.support.servers.qdrant import URL, locate_vectors
from tests.support.stock_client import Stock, indexed


async def test_audit_of_running_consumers_ends_with_0_or_1(
    stock: Stock, deployment: Deployment, tmp_path: Path
) -> None:
    vectors = locate_vectors(deployment, tmp_path / "vectors")
    servers = {
        "MNEMON_NATS_URL": str(deployment.nats_url),
        "DATABASE_URL": str(deployment.database_dsn),
        "MNEMON_DATABASE_SCHEMA": deployment.database_schema,
        **({"MNEMON_QDRANT_URL": URL} if URL else {"MNEMON_VECTORS_FOLDER": str(vectors.vectors_folder)}),
    }
    async with run_consumers(CONSUMERS, vectors):
        for body in (b'{"role":"user","content":"hello"}', b"not json", b'{"role":"user","content":"bye"}'):
            last = await stock.publish("chat.acme.u1.-.message.v1", body)
        await indexed(stock, last)

        clean = await mnemon("audit", **servers)
        assert clean.code == 0, clean
        assert clean.out.splitlines()[-1] == "everything is accounted for"
        assert "invalid_body" in clean.out
        assert "messages" in clean.out

        with psycopg.connect(str(deployment.database_dsn), autocommit=True) as connection:
            connection.execute(f"DELETE FROM {deployment.database_schema}.messages WHERE seq = %s", [last])
        found = await mnemon("audit", "--json", **servers)
        assert found.code == 1, found
        audit = json.loads(found.out)
        assert (audit["complete"], audit["missing"]) == (False, 2)
        assert audit["persist"] == {
            "events": 3,
            "applied": 1,
            "nothing": {},
            "dead": {"invalid_body": 1},
            "removed": 0,
            "waiting": 0,
            "missing": 1,
        }
        assert audit["dead_letters"] == [{"consumer": "persist", "reason": "invalid_body", "letters": 1}]
        assert audit["vectors"]["messages"] == {"points": 2, "shown": 1, "dead": 0, "waiting": 0}
        faults = [(each["kind"], each["seq"], each["consumer"], each["where"]) for each in audit["faults"]]
        assert faults == [
            ("absent", last, "persist", "messages"),
            ("left_point", last, "index", "vectors of messages"),
        ]

        shown = await mnemon("audit", "--sample", "10", **servers)
        assert shown.code == 1
        assert shown.out.splitlines()[-1] == f"2 faults; lowest positions: {last}"
        assert "mnemon rebuild" in shown.out

        wrong = await mnemon("audit", "--sample", "0", **servers)
        assert wrong.code == 2


async def test_audit_without_stack_names_the_cause(tmp_path: Path) -> None:
    found = await mnemon("audit", "--data", tmp_path)
    assert found.code == 3
    assert "mnemon up" in found.err
