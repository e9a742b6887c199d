"""`mnemon rebuild --redecide` beside a running stack."""

import json
import signal
from pathlib import Path

import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.settings.store import read_settings
from tests.support.processes.stack import mnemon
from tests.support.processes.terminal import run_at_terminal
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed


@pytest.mark.long
async def test_redecide_changes_facts_and_settings_and_reports_them(
    connection: Client, deployment: Deployment, database_url: str, tmp_path: Path
) -> None:
    stock = Stock(connection)
    servers = {
        "MNEMON_NATS_URL": str(deployment.nats_url),
        "DATABASE_URL": database_url,
        "MNEMON_DATABASE_SCHEMA": deployment.database_schema,
    }
    async with run_consumers(CONSUMERS, locate_vectors(deployment, tmp_path / "vectors")):
        for text in ("Grows tomatoes on the balcony", "Waters plants after sunset"):
            saved = await stock.ask("save", text=text)
            assert saved["decision"] == "saved"
        await indexed(stock, saved["seen_seq"])
        async with run_at_terminal(
            "rebuild", "--redecide", "dedupe.update_threshold=0.05", **servers
        ) as terminal:
            await terminal.await_question("Make these changes? [y/N]")
            terminal.send_signal(signal.SIGTERM)
            assert (await terminal.await_end()).code == 128 + signal.SIGTERM
        command = ["rebuild", "--redecide", "dedupe.update_threshold=0.05", "--yes", "--json"]
        changed = await mnemon(*command, **servers)
        assert changed.code == 0, changed.err
        told = json.loads(changed.out)
        assert (told["users"], told["merged"], told["rewritten"], told["changed"]) == (1, 1, 1, True)
        assert [each["user"] for each in told["first"]] == ["u1", "u1"]
        assert (await read_settings(connection)).dedupe.update_threshold == 0.05

        again = await mnemon("rebuild", "--redecide", "--json", **servers)
        assert again.code == 0, again.err
        told = json.loads(again.out)
        assert (told["users"], told["users_changed"], told["changed"]) == (1, 0, False)
