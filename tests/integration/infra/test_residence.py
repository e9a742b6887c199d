"""Residences of tenants: an unreadable entry hides no other, and its tenant keeps the former residence."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec
import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon_infra.config import Deployment
from mnemon_infra.process.data_folder import Endpoints
from mnemon_infra.settings.bucket import put_entry
from mnemon_infra.settings.residence import (
    Residence,
    build_residence_key,
    is_move_known,
    list_residences,
    write_residence,
)
from mnemon_infra.settings.store import LiveSettings

MOVED: Final = Residence("moved", "m1", "nats://new:4222")
TIMEOUT: Final = 60.0

UNREADABLE: Final = pytest.mark.parametrize(
    "body",
    [b"{", b'{"state":"elsewhere","move_id":"m1","peer":""}', b'{"state":"\xff","move_id":"m1","peer":""}'],
    ids=["no JSON", "unknown state", "no Unicode"],
)


@UNREADABLE
async def test_unreadable_residence_leaves_the_others_in_the_list(connection: Client, body: bytes) -> None:
    await write_residence(connection, "acme", MOVED, 0)
    last = await write_residence(connection, "globex", MOVED, 0)
    await put_entry(connection, build_residence_key("globex"), body, last)
    await put_entry(connection, build_residence_key("initech"), body, 0)
    await put_entry(connection, "residence.%20", b"{}", 0)
    with capture_logs() as said:
        assert await list_residences(connection) == {"acme": MOVED, "globex": MOVED}
    assert {(each["event"], each["key"]) for each in said} == {
        ("residence ignored as invalid, former residence stays", key)
        for key in ("residence.globex", "residence.initech", "residence.%20")
    }


async def test_list_of_residences_has_the_newest_readable_entries(connection: Client) -> None:
    last = await put_entry(connection, build_residence_key("acme"), b"{", 0)
    await write_residence(connection, "acme", MOVED, last)
    last = await write_residence(connection, "globex", MOVED, 0)
    await write_residence(connection, "globex", None, last)
    with capture_logs() as said:
        assert await list_residences(connection) == {"acme": MOVED}
    assert said == []


@UNREADABLE
async def test_process_follows_residences_after_an_unreadable_one(connection: Client, body: bytes) -> None:
    last = await write_residence(connection, "globex", MOVED, 0)
    live = LiveSettings()
    async with live.watch_bucket(connection), asyncio.timeout(TIMEOUT):
        await put_entry(connection, build_residence_key("globex"), body, last)
        await write_residence(connection, "acme", MOVED, 0)
        while live.get_residence("acme") is None:
            await asyncio.sleep(0.005)
        assert live.get_residence("globex") == MOVED


@UNREADABLE
async def test_process_that_starts_after_an_unreadable_residence_has_the_former_one(
    connection: Client, body: bytes
) -> None:
    last = await write_residence(connection, "globex", MOVED, 0)
    await put_entry(connection, build_residence_key("globex"), body, last)
    live = LiveSettings()
    async with live.watch_bucket(connection):
        assert live.get_residence("globex") == MOVED
    assert await is_move_known(connection, "globex", MOVED.move_id)


@UNREADABLE
async def test_command_names_an_unreadable_residence_and_the_next_step(
    deployment: Deployment, connection: Client, body: bytes
) -> None:
    last = await write_residence(connection, "globex", MOVED, 0)
    await put_entry(connection, build_residence_key("globex"), body, last)
    environment = {"MNEMON_NATS_URL": str(deployment.nats_url)}
    arguments = ["tenant", "status", "globex"]
    shown = await asyncio.to_thread(lambda: CliRunner().invoke(app, arguments, env=environment))
    assert shown.exit_code == 3, repr(shown.exception)
    assert "the residence of the tenant globex is invalid" in shown.stderr
    assert "nats kv revert settings residence.globex REVISION" in shown.stderr


async def test_status_distinguishes_withheld_removals_from_late_events(
    deployment: Deployment, connection: Client, tmp_path: Path
) -> None:
    residence = msgspec.structs.replace(MOVED, withheld=(3,))
    revision = await write_residence(connection, "acme", residence, 0)
    Endpoints(nats=str(deployment.nats_url), database="postgresql://127.0.0.1/mnemon").write(tmp_path)
    arguments = ["tenant", "status", "acme", "--data", str(tmp_path)]
    withheld = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert withheld.exit_code == 1, repr(withheld.exception)
    assert "1 late removal was not forwarded, so that newer messages stay." in withheld.stdout
    assert "To forward late events" not in withheld.stdout
    await connection.jetstream().publish("chat.acme.u1.-.message.v1", b'{"role":"user","content":"late"}')
    late = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert (
        "1 event arrived here since the tenant left. To forward late events: mnemon tenant move acme --to"
        f" URL|DIR --data {tmp_path}\n"
    ) in late.stdout
    await write_residence(connection, "acme", msgspec.structs.replace(residence, is_confirmed=True), revision)
    confirmed = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert "1 event arrived here since the tenant left." in confirmed.stdout
    assert "late removal" not in confirmed.stdout
