"""Clients that contain no code of mnemon, and `mnemon import`, with a running stack."""

import json
import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nats
import pytest

from mnemon_bench.provider_server.server import ProviderServer
from tests.support.processes.programs import install_packages, require_node, run_program
from tests.support.processes.stack import Up, mnemon

NODE = Path(__file__).parent / "node"
CONTRACTS = Path(__file__).parents[3] / "docs" / "contracts.md"
LOCOMO = Path(os.environ.get("LOCOMO_DATA", Path(__file__).parents[4] / "shared" / "data" / "locomo"))


def said(reply: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in reply["messages"]]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Return a folder with the Node client, the example bot and their package file."""
    require_node()
    folder = Path(shutil.copytree(NODE, tmp_path / "node"))
    shutil.copy(NODE.parents[3] / "docs" / "examples" / "bot.mjs", folder)
    return folder


async def test_stock_nats_py_client_publishes_and_asks(shared: Up) -> None:
    assert shared.endpoints
    connection = await nats.connect(shared.endpoints.nats)
    subject = "chat.stock.u1.-.message.v1"
    await connection.publish(subject, b'{"role":"user","content":"hi"}')
    answer = await connection.request(subject, b'{"role":"assistant","content":"hello"}', timeout=60)
    request = json.dumps({"min_seq": json.loads(answer.data)["seq"]}).encode()
    reply = await connection.request("ask.stock.u1.history.v1", request, timeout=60)
    assert said(json.loads(reply.data)) == [("user", "hi"), ("assistant", "hello")]
    await connection.close()


@pytest.mark.long
async def test_node_scripts_publish_and_ask(shared: Up, node: Path) -> None:
    assert shared.endpoints
    await install_packages(node)
    done = await run_program("node", "stock_client.mjs", shared.endpoints.nats, folder=node)
    assert done.code == 0, done.err
    assert said(json.loads(done.out)) == [("user", "hi"), ("assistant", "Привет, Node")]

    (shown,) = re.findall(r"```js\n(import.*?)```", CONTRACTS.read_text(encoding="utf-8"), re.DOTALL)
    (node / "shown.mjs").write_text(shown, encoding="utf-8")
    done = await run_program("node", "shown.mjs", shared.endpoints.nats, folder=node)
    assert done.code == 0, done.err
    assert "content: 'hi'" in done.out

    told = "My cello annoys Porto\nWhat annoys them?\n"
    with ProviderServer() as model:
        servers = {"MNEMON_NATS_URL": shared.endpoints.nats, "MNEMON_MODEL_URL": model.openai_url}
        done = await run_program("node", "bot.mjs", "anna@example.com", folder=node, told=told, **servers)
    assert done.code == 0, done.err
    assert "cello" in done.out.splitlines()[-1], "from the question before"


@pytest.mark.long
@pytest.mark.skipif(
    not LOCOMO.is_dir(), reason="the LoCoMo files are not at hand: set LOCOMO_DATA to their folder"
)
async def test_imported_locomo_sample_comes_back_by_history(shared: Up) -> None:
    assert shared.endpoints
    files = sorted(LOCOMO.glob("*.json"))
    done = await mnemon("import", "locomo", *files, "--tenant", "locomo", "--data", shared.data, "--json")
    assert done.code == 0, done
    summary = json.loads(done.out)
    connection = await nats.connect(shared.endpoints.nats)
    for file in files:
        source = json.loads(file.read_text())
        request = json.dumps({"limit": 1000, "min_seq": summary["last_seq"]}).encode()
        answer = await connection.request(f"ask.locomo.{source['sample_id']}.history.v1", request, timeout=60)
        messages = json.loads(answer.data)["messages"]
        found = [(one["name"], one["content"], _minute(one["sent_at"])) for one in messages]
        assert found == list(_turns(source["conversation"]))

    again = await mnemon("import", "locomo", *files, "--tenant", "locomo", "--data", shared.data, "--json")
    assert json.loads(again.out)["published"] == 0
    log = await connection.jetstream().stream_info("LOG", subjects_filter="chat.locomo.>")
    assert sum((log.state.subjects or {}).values()) == summary["published"]
    await connection.close()


async def test_import_names_invalid_input(tmp_path: Path) -> None:
    file = tmp_path / "conv.json"
    missing = await mnemon("import", "locomo", file, "--tenant", "acme")
    assert missing.code == 2
    assert "conv.json cannot be read" in missing.err

    file.write_text("{}")
    other = await mnemon("import", "locomo", file, "--tenant", "acme")
    assert other.code == 2
    assert "conv.json is not a LoCoMo file: " in other.err

    file.write_text('{"sample_id": "c", "conversation": {"speaker_a": "Ann", "speaker_b": "Bob"}}')
    wrong = await mnemon("import", "locomo", file, "--tenant", "")
    assert wrong.code == 2
    assert "tenant: " in wrong.err

    dry = await mnemon("import", "locomo", file, "--tenant", "acme", "--dry-run")
    assert dry.code == 0, dry
    assert "Nothing was sent" in dry.out

    alone = await mnemon("import", "locomo", file, "--tenant", "acme", MNEMON_NATS_URL="nats://127.0.0.1:1")
    assert alone.code == 3
    assert "127.0.0.1:1" in alone.err


def _minute(moment: str) -> datetime:
    return datetime.fromisoformat(moment).replace(second=0, microsecond=0)


def _turns(conversation: dict[str, Any]) -> list[tuple[str, str, datetime]]:
    sessions = sorted(
        (int(key.removeprefix("session_")), turns)
        for key, turns in conversation.items()
        if isinstance(turns, list)
    )
    return [
        (
            turn["speaker"],
            turn["text"],
            datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(
                tzinfo=UTC
            ),
        )
        for number, turns in sessions
        for turn in turns
    ]
