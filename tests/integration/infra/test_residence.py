"""Residences of tenants: an unreadable one leaves the others, and the former one of its tenant."""

import asyncio
from typing import Final

import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs

from mnemon_infra.settings.bucket import put_entry
from mnemon_infra.settings.residence import (
    Residence,
    is_move_known,
    list_residences,
    residence_key,
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
    await put_entry(connection, residence_key("globex"), body, last)
    await put_entry(connection, residence_key("initech"), body, 0)
    await put_entry(connection, "residence.%20", b"{}", 0)
    with capture_logs() as said:
        assert await list_residences(connection) == {"acme": MOVED, "globex": MOVED}
    assert {(each["event"], each["key"]) for each in said} == {
        ("residence rejected as invalid, former residence stays", key)
        for key in ("residence.globex", "residence.initech", "residence.%20")
    }


async def test_list_of_residences_has_the_newest_readable_entries(connection: Client) -> None:
    last = await put_entry(connection, residence_key("acme"), b"{", 0)
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
    async with live.watched(connection), asyncio.timeout(TIMEOUT):
        await put_entry(connection, residence_key("globex"), body, last)
        await write_residence(connection, "acme", MOVED, 0)
        while live.get_residence("acme") is None:
            await asyncio.sleep(0.005)
        assert live.get_residence("globex") == MOVED


@UNREADABLE
async def test_process_that_starts_after_an_unreadable_residence_has_the_former_one(
    connection: Client, body: bytes
) -> None:
    last = await write_residence(connection, "globex", MOVED, 0)
    await put_entry(connection, residence_key("globex"), body, last)
    live = LiveSettings()
    async with live.watched(connection):
        assert live.get_residence("globex") == MOVED
    assert await is_move_known(connection, "globex", MOVED.move_id)
