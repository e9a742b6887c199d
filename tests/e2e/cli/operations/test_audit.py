"""`mnemon audit` on a running stack: its exit codes, and what it says."""

import json
from pathlib import Path

import nats
import psycopg

from tests.support.processes.stack import Up, mnemon
from tests.support.stock_client import Stock, indexed


async def test_audit_of_running_stack_ends_with_0_or_1(stack: Up) -> None:
    assert stack.endpoints is not None
    async with await nats.connect(stack.endpoints.nats) as client:
        jetstream = client.jetstream()
        for body in (b'{"role":"user","content":"hello"}', b"not json", b'{"role":"user","content":"bye"}'):
            last = (await jetstream.publish("chat.acme.u1.-.message.v1", body)).seq
        await indexed(Stock(client), last)

    clean = await mnemon("audit", "--data", stack.data)
    assert clean.code == 0, clean
    assert clean.out.splitlines()[-1] == "everything is accounted for"
    assert "invalid_body" in clean.out
    assert "messages" in clean.out

    with psycopg.connect(stack.endpoints.database, autocommit=True) as connection:
        connection.execute(f"DELETE FROM {stack.schema}.messages WHERE seq = %s", [last])
    found = await mnemon("audit", "--data", stack.data, "--json")
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

    shown = await mnemon("audit", "--data", stack.data, "--sample", "10")
    assert shown.code == 1
    assert shown.out.splitlines()[-1] == f"2 events are not accounted for: {last}"
    assert "mnemon rebuild" in shown.out

    wrong = await mnemon("audit", "--data", stack.data, "--sample", "0")
    assert wrong.code == 2


async def test_audit_without_stack_names_the_cause(tmp_path: Path) -> None:
    found = await mnemon("audit", "--data", tmp_path)
    assert found.code == 3
    assert "mnemon up" in found.err
