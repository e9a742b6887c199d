"""The commands that show memory: `mnemon history` and `mnemon export`."""

import json
import os
import re
import shlex
import tempfile
from pathlib import Path

import nats
import pytest

from tests.support.processes.stack import Up, mnemon, start_mnemon
from tests.support.stock_client import persisted


async def test_history_shows_published_messages(shared: Up) -> None:
    assert shared.endpoints
    connection = await nats.connect(shared.endpoints.nats)
    body = {"role": "user", "content": "Привет", "name": "Иван", "sent_at": "2026-11-21T10:00:00Z"}
    said = await connection.request("chat.shown.u1.-.message.v1", json.dumps(body).encode(), timeout=60)
    await persisted(connection, json.loads(said.data)["seq"])
    await connection.close()

    shown = await mnemon("history", "u1", "--tenant", "shown", "--data", shared.data)
    assert (shown.code, shown.err) == (0, "")
    assert "2026-11-21 10:00" in shown.out
    assert shown.out.rstrip().endswith("Иван  Привет")

    shown = await mnemon("history", "u1", "--tenant", "shown", "--data", shared.data, "--json")
    assert [message["content"] for message in json.loads(shown.out)["messages"]] == ["Привет"]

    named = await mnemon("history", "--user", "u1", "--tenant", "shown", "--data", shared.data, "--json")
    assert (named.code, json.loads(named.out)["messages"]) == (0, json.loads(shown.out)["messages"])

    shown = await mnemon("history", "u1", "--tenant", "shown", "--data", shared.data, "--as-of", "1")
    assert (shown.code, shown.out) == (1, "")
    assert "`mnemon rebuild --until 1`" in shown.err, "what makes it"

    of = ("--user", "u1", "--tenant", "shown", "--data", shared.data)
    newest = await mnemon("history", *of, "--limit", "1")
    hint = newest.err.strip().rpartition("older messages, if there are any: ")[2]
    assert re.fullmatch(r"--conversation \S+ --before \d+", hint)
    older = await mnemon("history", *of, *shlex.split(hint))
    assert (older.code, older.out.splitlines()[-1]) == (0, "no messages")

    shown = await mnemon("history", "nobody", "--tenant", "shown", "--data", shared.data)
    assert (shown.code, shown.out.splitlines()[-1]) == (0, "no messages")


async def test_history_tells_how_many_entries_have_no_room(shared: Up) -> None:
    assert shared.endpoints
    connection = await nats.connect(shared.endpoints.nats)
    for number in range(10):
        body = json.dumps({"role": "user", "content": f"{number} {'word ' * 180_000}"}).encode()
        said = await connection.request("chat.long.u1.-.message.v1", body, timeout=60)
    await persisted(connection, json.loads(said.data)["seq"])
    await connection.close()

    shown = await mnemon("history", "--user", "u1", "--tenant", "long", "--data", shared.data)

    assert shown.code == 0
    assert shown.err.startswith("older messages, if there are any: --conversation ")
    assert "1 older entry left out: a reply has no room for more" in shown.out
    assert "1 word" in shown.out
    assert "0 word" not in shown.out


async def test_an_export_of_a_user_without_memory_writes_no_file(shared: Up, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    of = ("--tenant", "shown", "--user", "nobody", "-o", out, "--data", shared.data)
    for format_ in ("jsonl", "markdown"):
        written = await mnemon("export", format_, *of)
        assert (written.code, written.out, out.exists()) == (1, "", False)
        assert "the export of user 'nobody' of tenant 'shown' is empty" in written.err
    streamed = await mnemon("export", "jsonl", *of[:4], "-o", "-", "--data", shared.data)
    assert (streamed.code, streamed.out) == (1, "")


async def test_an_export_without_a_file_goes_to_standard_output(shared: Up) -> None:
    of = ("--tenant", "exported", "--user", "u1", "--data", shared.data)
    saved = await mnemon("save", "Anna likes green tea", *of)
    assert saved.code == 0, saved.err
    for format_ in ("jsonl", "markdown"):
        exported = await mnemon("export", format_, *of)
        assert (exported.code, "Anna likes green tea" in exported.out) == (0, True)
        assert re.fullmatch(r"Users: 1, lines: \d+, as of log position [\d,]+\.\n", exported.err)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
async def test_output_that_cannot_be_written_ends_history_and_exports(shared: Up) -> None:
    of = ("--tenant", "unwritten", "--user", "u1", "--data", shared.data)
    saved = await mnemon("save", "Anna likes green tea", *of)
    assert saved.code == 0, saved.err
    reading, writing = os.pipe()
    os.close(reading)
    with Path("/dev/full").open("wb") as full, os.fdopen(writing, "wb") as closed:
        for command in ("history",), ("export", "jsonl"), ("export", "markdown"):
            for output, code, problem in (
                (full, 2, "mnemon: standard output cannot be written: No space left on device\n"),
                (closed, 1, ""),
            ):
                with tempfile.TemporaryFile() as errors:
                    process = await start_mnemon(*command, *of, environment={}, output=output, errors=errors)
                    assert await process.wait() == code
                    errors.seek(0)
                    assert errors.read().decode().partition("  ")[0] == problem
