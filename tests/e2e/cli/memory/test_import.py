"""`mnemon import` and `mnemon export`."""

import json
from pathlib import Path
from typing import Any

from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.processes.stack import Up, mnemon

CHAT: dict[str, Any] = {
    "name": "Helper",
    "type": "bot_chat",
    "id": 777,
    "messages": [
        {"id": 1, "type": "message", "date": "2026-03-01T10:00:00", "from_id": "user42", "text": "Hi"},
        {"id": 2, "type": "message", "date": "2026-03-01T10:00:01", "from_id": "user777", "text": "Hello"},
        {"id": 3, "type": "message", "date": "soon", "from_id": "user42", "text": "Bye"},
        {"id": 4, "type": "service", "action": "phone_call", "text": ""},
    ],
}


async def test_chat_is_imported_and_exported(shared: Up, tmp_path: Path) -> None:
    chat, refused, out = (tmp_path / name for name in ("result.json", "refused.jsonl", "out.jsonl"))
    chat.write_text(json.dumps(CHAT))
    telegram = ("import", "telegram", chat, "--tenant", "brought", "--json")
    done = await mnemon(*telegram, "--refused", refused, "--data", shared.data)
    figures = json.loads(done.out)
    assert (done.code, done.err, figures["published"]) == (1, "", 2), "one of them did not come in"
    assert figures["left"] == {"a service message: phone_call": 1}
    assert json.loads(refused.read_text())["record"] == CHAT["messages"][2]

    written = await mnemon(
        "export", "jsonl", "--tenant", "brought", "-o", out, "--data", shared.data, "--json"
    )
    assert (written.code, json.loads(written.out)["users"]) == (0, 1)
    assert [json.loads(line).get("n") for line in out.read_text().splitlines()] == [None, 1, 2]

    again = await mnemon("import", "jsonl", out, "--data", shared.data)
    assert (again.code, again.out.splitlines()[-1]) == (0, "0 events published, 2 already there.")


async def test_corrected_import_returns_the_former_user_to_the_conversation_before(
    shared: Up, tmp_path: Path
) -> None:
    assert shared.endpoints
    path = tmp_path / "result.json"
    talk = [{**CHAT["messages"][0], "id": at, "from_id": f"user{at}"} for at in (42, 777)]
    path.write_text(json.dumps({"name": "Anna", "type": "personal_chat", "id": 777, "messages": talk}))
    telegram = ("import", "telegram", path, "--tenant", "returned", "--data", shared.data, "--json")
    async with MemoryClient.connect(shared.endpoints.nats, tenant="returned", timeouts=PATIENT) as memory:
        await memory.publish("42", "user", "Before all conversations")
        await memory.start("42", "cello")
        await memory.publish("42", "user", "I play the cello")
        guessed = json.loads((await mnemon(*telegram)).out)
        wrong = await memory.history("42", min_seq=guessed["last_seq"])
        assert wrong.conversation == "telegram-777"

        corrected = json.loads((await mnemon(*telegram, "--bot", "user42")).out)
        assert corrected["first_doubts"][0]["reason"].endswith(
            "imported again; conversation 'cello' is current again"
        )
        returned = await memory.history("42", min_seq=corrected["last_seq"])
        assert returned.conversation == "cello"
        assert [each.content.rpartition("] ")[2] for each in returned.messages] == ["I play the cello"]


async def test_a_second_import_with_the_right_name_corrects_the_first(shared: Up, tmp_path: Path) -> None:
    assert shared.endpoints
    path = tmp_path / "result.json"
    talk = [("user42", "Hello, I am the bot"), ("user777", "I play the cello"), ("user42", "How nice")]
    messages = [
        {"id": 1 + at, "type": "message", "date": f"2026-03-01T10:00:0{at}", "from_id": sender, "text": text}
        for at, (sender, text) in enumerate(talk)
    ]
    path.write_text(json.dumps({"name": "Anna", "type": "personal_chat", "id": 777, "messages": messages}))
    telegram = ("import", "telegram", path, "--tenant", "recast", "--data", shared.data, "--json")

    guessed = await mnemon(*telegram)
    figures = json.loads(guessed.out)
    assert (guessed.code, figures["published"], figures["doubts"]) == (0, 3, 1)
    async with MemoryClient.connect(shared.endpoints.nats, tenant="recast", timeouts=PATIENT) as memory:
        await memory.history("42", min_seq=figures["last_seq"])

        corrected = json.loads((await mnemon(*telegram, "--bot", "user42")).out)
        assert corrected["published"] == 3
        assert "was erased and is imported again" in corrected["first_doubts"][0]["reason"]
        wrong = await memory.history("42", conversation="telegram-777", min_seq=corrected["last_seq"])
        assert wrong.messages == ()
        right = await memory.history("777", min_seq=corrected["last_seq"])
        assert [(each.role, each.content.rpartition("] ")[2]) for each in right.messages] == [
            ("assistant", "Hello, I am the bot"),
            ("user", "I play the cello"),
            ("assistant", "How nice"),
        ]

        again = json.loads((await mnemon(*telegram, "--bot", "user42")).out)
        assert (again["published"], again["already_there"], again["doubts"]) == (0, 3, 0)

        # The import of one user publishes the same ids with the speakers exchanged.
        swapped = json.loads((await mnemon(*telegram, "--bot", "user777", "--user", "777")).out)
        other = await memory.history("777", min_seq=swapped["last_seq"])
        assert [each.role for each in other.messages] == ["user", "assistant", "user"]

        # A correction keeps what the user has said to the bot since the import.
        said = await memory.publish("777", "user", "I have a new cello")
        mixed = json.loads((await mnemon(*telegram, "--bot", "user42")).out)
        assert "left unchanged" in mixed["first_doubts"][0]["reason"]
        kept = await memory.history("777", min_seq=max(said, mixed["last_seq"] or 0))
        assert [each.role for each in kept.messages] == ["user", "assistant", "user", "user"]
