"""Memory in and out by the commands."""

import json
from pathlib import Path

from tests.e2e.conftest import Up, mnemon

CHAT = {
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


async def test_a_chat_comes_in_and_goes_out(shared: Up, tmp_path: Path) -> None:
    chat, refused, out = (tmp_path / name for name in ("result.json", "refused.jsonl", "out.jsonl"))
    chat.write_text(json.dumps(CHAT))
    telegram = ("import", "telegram", chat, "--tenant", "brought", "--json")
    done = await mnemon(*telegram, "--refused", refused, "--data", shared.data)
    figures = json.loads(done.out)
    assert (done.code, done.err, figures["published"]) == (1, "", 2), "one of them did not come in"
    assert figures["left"] == {"a notice of the service: phone_call": 1}
    assert json.loads(refused.read_text())["record"] == CHAT["messages"][2]  # type: ignore[index]

    written = await mnemon(
        "export", "jsonl", "--tenant", "brought", "-o", out, "--data", shared.data, "--json"
    )
    assert (written.code, json.loads(written.out)["users"]) == (0, 1)
    assert [json.loads(line).get("n") for line in out.read_text().splitlines()] == [None, 1, 2]

    again = await mnemon("import", "jsonl", out, "--data", shared.data)
    assert (again.code, again.out.splitlines()[-1]) == (0, "0 events published, 2 were there already.")
