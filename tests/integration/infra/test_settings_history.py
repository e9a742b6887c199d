"""The history of settings, and rollback to a former revision."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from nats.aio.client import Client

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import unset_value
from mnemon_contracts.settings.groups import FactLimits, SettingsV1
from mnemon_contracts.streams import SETTINGS
from mnemon_infra.settings.history import NoSuchRevision, SettingChange, read_history, roll_back_settings
from mnemon_infra.settings.store import LiveSettings, change_settings, read_settings
from tests.support.settings_edit import setting


async def test_history_lists_changes_with_times(connection: Client) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=1)
    first = await change_settings(connection, setting(recent_messages=3, limits__per_user=100))
    other = await change_settings(connection, setting(recent_messages=9), "acme")
    second = await change_settings(connection, lambda document: unset_value(document, "limits"))
    third = await change_settings(connection, setting(recent_messages=4))
    revisions = await read_history(connection)
    assert [(each.revision, each.changes) for each in revisions] == [
        (first, (SettingChange("recent_messages", (), (3,)), SettingChange("limits.per_user", (), (100,)))),
        (second, (SettingChange("limits.per_user", (100,), ()),)),
        (third, (SettingChange("recent_messages", (3,), (4,)),)),
    ]
    assert all(begun < each.at < datetime.now(UTC) + timedelta(seconds=1) for each in revisions)
    assert [each.revision for each in await read_history(connection, "acme")] == [other]


async def test_history_names_the_tenants_with_settings(connection: Client) -> None:
    bucket = await connection.jetstream().key_value(SETTINGS)
    await change_settings(connection, setting(recent_messages=3))
    await bucket.put("default", b'{"recent_messages": 4}')
    assert [each.by for each in await read_history(connection)] == ["test", None]


async def test_rollback_puts_a_former_value_in_force_again(connection: Client) -> None:
    first = await change_settings(connection, setting(recent_messages=3, limits__per_user=100))
    second = await change_settings(connection, setting(recent_messages=4, wait_for_log_ms=5))
    assert first is not None
    assert second is not None
    again = await roll_back_settings(connection, first)
    assert again is not None
    assert again > second
    assert await read_settings(connection) == SettingsV1(recent_messages=3, limits=FactLimits(per_user=100))
    assert (await read_history(connection))[-1].changes == (
        SettingChange("recent_messages", (4,), (3,)),
        SettingChange("wait_for_log_ms", (5,), ()),
    )
    await roll_back_settings(connection, second)
    assert (await read_settings(connection)).wait_for_log_ms == 5


async def test_rollback_to_missing_revision_is_refused(connection: Client) -> None:
    bucket = await connection.jetstream().key_value(SETTINGS)
    await change_settings(connection, setting(recent_messages=3))
    other = await change_settings(connection, setting(recent_messages=4), "acme")
    await bucket.delete("default")
    deletion = (await read_history(connection))[-1].revision
    assert other is not None
    for revision in (other, deletion, 99, 2**62, 2**70):
        with pytest.raises(NoSuchRevision, match=rf"revision {revision} of .* is not stored"):
            await roll_back_settings(connection, revision)
    with pytest.raises(NoSuchRevision, match=r"revision 1 of .* is not stored"):
        await roll_back_settings(connection, 1, "acme")
    rubbish = await bucket.put("default", b'{"recent_messages": 0}')
    with pytest.raises(InvalidBody, match="recent_messages"):
        await roll_back_settings(connection, rubbish)


async def test_equal_value_makes_no_revision(connection: Client) -> None:
    revision = await change_settings(connection, setting(recent_messages=3))
    assert revision is not None
    assert await change_settings(connection, setting(recent_messages=3)) is None
    assert await roll_back_settings(connection, revision) is None
    assert len(await read_history(connection)) == 1


@pytest.fixture
def _entries_arrive_late(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Delay stream messages by 0.05 s, so that replies of the server arrive first, as on a busy machine."""
    take: Any = Client._process_msg
    arriving: set[asyncio.Task[None]] = set()

    async def arrive(*message: object) -> None:
        await asyncio.sleep(0.05)
        await take(*message)

    async def taken(client: Client, sid: int, subject: bytes, reply: bytes, *rest: object) -> None:
        message = client, sid, subject, reply, *rest
        if reply.startswith(b"$JS.ACK."):
            arriving.add(asyncio.create_task(arrive(*message)))
        else:
            await take(*message)

    monkeypatch.setattr(Client, "_process_msg", taken)
    yield
    assert arriving, "there was nothing to wait for"


@pytest.mark.usefixtures("_entries_arrive_late")
async def test_history_waits_for_late_entries(connection: Client) -> None:
    revisions = [
        await change_settings(connection, setting(recent_messages=messages)) for messages in (3, 4, 5)
    ]
    assert [each.revision for each in await read_history(connection)] == revisions
    await change_settings(connection, setting(recent_messages=6), "acme")
    live = LiveSettings()
    async with live.watch_bucket(connection):
        assert live.get_settings("acme").recent_messages == 6
