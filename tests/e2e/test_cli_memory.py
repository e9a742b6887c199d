"""The commands that look at memory and change how it is shown."""

import json

import nats

from tests.e2e.conftest import Up, mnemon


async def test_history_shows_what_was_said(stack: Up) -> None:
    assert stack.endpoints
    connection = await nats.connect(stack.endpoints.nats)
    body = {"role": "user", "content": "Привет", "name": "Иван", "sent_at": "2026-11-21T10:00:00Z"}
    said = await connection.request("chat.acme.u1.-.message.v1", json.dumps(body).encode(), timeout=10)
    seen = {"min_seq": json.loads(said.data)["seq"]}
    await connection.request("ask.acme.u1.history.v1", json.dumps(seen).encode(), timeout=10)
    await connection.close()

    shown = await mnemon("history", "u1", "--tenant", "acme", "--data", stack.data)
    assert (shown.code, shown.err) == (0, "")
    assert "2026-11-21 10:00" in shown.out
    assert shown.out.rstrip().endswith("Иван  Привет")

    shown = await mnemon("history", "u1", "--tenant", "acme", "--data", stack.data, "--json")
    assert [message["content"] for message in json.loads(shown.out)["messages"]] == ["Привет"]

    shown = await mnemon("history", "nobody", "--tenant", "acme", "--data", stack.data)
    assert (shown.code, shown.out.splitlines()[-1]) == (0, "no messages")


async def test_settings_are_set_and_refused(stack: Up) -> None:
    done = await mnemon(
        "settings", "set", "recent_messages=3", "time_stamps.zone=Europe/Moscow", "--data", stack.data
    )
    assert done.code == 0, done.err
    shown = json.loads((await mnemon("settings", "get", "--data", stack.data, "--json")).out)
    assert (shown["recent_messages"], shown["time_stamps"]["zone"]) == (3, "Europe/Moscow")
    assert "Europe/Moscow" in (await mnemon("settings", "get", "--data", stack.data)).out

    for wrong, named in (
        ("recent_messages=0", "recent_messages"),
        ("time_stamps.zone=Moon", "zone"),
        ("colour=red", "colour"),
        ("recent_messages", "NAME=VALUE"),
    ):
        refused = await mnemon("settings", "set", wrong, "--data", stack.data)
        assert refused.code == 2, refused.out
        assert named in refused.err
    unchanged = json.loads((await mnemon("settings", "get", "--data", stack.data, "--json")).out)
    assert unchanged == shown
