"""A backup and its restore, on real servers."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.client import Client
from structlog.testing import capture_logs

from mnemon.operations.backup.encryption import BackupCipher, KeyUnusable, NoCipher, choose_cipher
from mnemon.operations.backup.manifest import BackupUnusable, Manifest
from mnemon.operations.backup.repository import BackupRepository
from mnemon.operations.backup.run import BackupResult, SegmentSize, read_records, run_backup
from mnemon.operations.backup.segments import LogRecord
from mnemon.operations.restore.later_erasures import LaterErasures
from mnemon.operations.restore.run import (
    RestoreResult,
    find_later_erasures,
    open_backup,
    restore_log,
    verify_backup,
)
from mnemon_contracts.events.erasure import ALL_BEFORE, UserErasedV1
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import MAX_PAYLOAD, connect
from mnemon_infra.broker.provisioning.presence import require_streams
from mnemon_infra.broker.provisioning.restoration import (
    BATCH_BYTES,
    ExactMessage,
    ForeignEvent,
    LogNotEmpty,
    MessageTooLarge,
)
from mnemon_infra.broker.provisioning.topology import SETTINGS_KEPT, list_drift, provision
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.broker.streams.restored_log import FILLER_SUBJECT, RestoreUnfinished
from mnemon_infra.broker.streams.stream_reader import find_position
from mnemon_infra.delivery import STORED_AT
from mnemon_infra.embedded.nats_server import RESTORE_MAX_PAYLOAD, NatsServer
from mnemon_infra.process.cancellation import run_task
from mnemon_infra.settings.api_keys import issue_key, open_api_keys
from mnemon_infra.settings.history import read_history, read_settings_at
from mnemon_infra.settings.store import change_settings
from mnemon_infra.storage import bucket_lock
from mnemon_infra.storage.erasure_register import RegisterEntry
from mnemon_infra.storage.object_store import LocalStore, open_object_store
from tests.support.servers.bucket_server import BUCKET, serve_bucket
from tests.support.stock_client import Stock

SMALL = SegmentSize(10, 1 << 20)
NO_ERASURES = LaterErasures([])


def ignore_progress(*_: object) -> None:
    pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backup"


@pytest_asyncio.fixture
async def other(tmp_path: Path) -> AsyncIterator[Client]:
    """A connection to a server without streams."""
    async with empty_server(tmp_path / "other") as connection:
        yield connection


@asynccontextmanager
async def empty_server(data: Path, max_payload: int = MAX_PAYLOAD) -> AsyncIterator[Client]:
    data.mkdir(exist_ok=True)
    server = NatsServer(data, None, max_payload=max_payload)
    await server.start()
    connection = await connect(server.url, name="other")
    try:
        yield connection
    finally:
        await connection.close()
        await server.stop()


def repository(folder: Path, cipher: BackupCipher | None = None) -> BackupRepository:
    return BackupRepository(LocalStore(folder), cipher or NoCipher())


@contextmanager
def killed_after(segments: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interrupt the backup that runs in the block before it writes segment number `segments` + 1."""
    writes, written = 0, LocalStore.write

    async def write(self: LocalStore, name: str, body: bytes) -> None:
        nonlocal writes
        writes += name.startswith("segments/")
        if writes > segments:
            raise KeyboardInterrupt
        await written(self, name, body)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "write", write)
        with pytest.raises(KeyboardInterrupt):
            yield


async def back_up(connection: Client, folder: Path, size: SegmentSize = SMALL) -> BackupResult:
    return await run_backup(connection, repository(folder), None, ignore_progress, size)


async def restore(connection: Client, folder: Path, erasures: LaterErasures = NO_ERASURES) -> RestoreResult:
    return await restore_log(connection, await open_backup(repository(folder)), erasures, 1, ignore_progress)


async def records_of(connection: Client) -> list[LogRecord]:
    end = await read_log_end(connection.jetstream())
    return [each async for page in read_records(connection, after=0, up_to=end) for each in page]


def segments(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in (folder / "segments").iterdir()}


async def fill(stock: Stock, count: int, place: str = "acme.u1.-") -> list[int]:
    return [await stock.say(f"message {number}", place) for number in range(count)]


async def publish_at_limit(stock: Stock, size: int) -> int:
    """Publish an event that has `size` bytes with the headers of a restore; return its position."""
    position = await read_log_end(stock.connection.jetstream()) + 1
    restored = {"Nats-Msg-Id": "ж", STORED_AT: f"{position}:{time.time_ns()}"}
    written = ExactMessage("", restored, b"").encode_headers(
        {"Nats-Expected-Last-Sequence": str(position - 1)}
    )
    return await stock.publish("chat.acme.u1.-.message.v1", b"x" * (size - len(written)), Nats_Msg_Id="ж")


async def shorten_duplicate_window(connection: Client) -> None:
    stream_context = connection.jetstream()
    config = (await stream_context.stream_info(LOG)).config
    await stream_context.update_stream(config.evolve(duplicate_window=0.1))


async def remove(connection: Client, *positions: int) -> None:
    for each in positions:
        await connection.jetstream().delete_msg(LOG, each)


async def test_keys_for_the_gateway_survive(stock: Stock, folder: Path, other: Client) -> None:
    keys = await open_api_keys(stock.connection)
    kept, revoked = issue_key("acme"), issue_key("acme")
    for each in (kept, revoked):
        await keys.add(each.stored)
    await keys.revoke(revoked.stored.id)
    await back_up(stock.connection, folder)
    await restore(other, folder)
    restored = await open_api_keys(other)
    assert await restored.find(kept.text) == kept.stored
    assert await restored.find(revoked.text) is None


async def test_positions_times_and_headers_survive_gaps(stock: Stock, folder: Path, other: Client) -> None:
    await fill(stock, 25)
    await stock.publish("chat.acme.u1.-.message.v1", b"\xff not text", Nats_Msg_Id="x", traceparent="t")
    await stock.publish("chat.acme.u1.-.message.v1", b"")
    await remove(stock.connection, 1, 2, 7, *range(11, 21), 27)
    before = await records_of(stock.connection)

    await back_up(stock.connection, folder)
    result = await restore(other, folder)

    assert await records_of(other) == before
    assert result.events == len(before) == 13
    info = await other.jetstream().stream_info(LOG)
    assert (info.state.first_seq, info.state.last_seq, info.state.messages) == (3, 27, 13)
    assert FILLER_SUBJECT not in (info.config.subjects or [])
    assert [each for each in await list_drift(other, 1) if each.action != "unchanged"] == []
    assert await Stock(other).say("next") == 28


async def test_an_event_as_large_as_the_server_accepts_is_restored(
    stock: Stock, folder: Path, other: Client
) -> None:
    await fill(stock, 2)
    await publish_at_limit(stock, other.max_payload)
    await fill(stock, 2)
    await back_up(stock.connection, folder)
    await restore(other, folder)
    assert await records_of(other) == await records_of(stock.connection)


async def test_a_larger_event_is_refused_with_the_setting_of_the_server(
    stock: Stock, folder: Path, other: Client
) -> None:
    position = await publish_at_limit(stock, other.max_payload + 1)
    await back_up(stock.connection, folder)
    with pytest.raises(MessageTooLarge, match=f"position {position:,} has .*\\. Set `max_payload: 9MB` in"):
        await restore(other, folder)


async def test_restore_into_a_folder_accepts_the_largest_event_of_the_log(
    stock: Stock, folder: Path, tmp_path: Path
) -> None:
    room = stock.connection.max_payload - len(b"NATS/1.0\r\nNats-Msg-Id: x\r\n\r\n")
    await stock.publish("chat.acme.u1.-.message.v1", b"x" * room, Nats_Msg_Id="x")
    await back_up(stock.connection, folder)
    data = tmp_path / "other"
    async with empty_server(data, RESTORE_MAX_PAYLOAD) as connection:
        await restore(connection, folder)
    async with empty_server(data) as connection:
        assert await records_of(connection) == await records_of(stock.connection)


async def test_events_of_one_id_are_all_restored(stock: Stock, folder: Path, other: Client) -> None:
    large = BATCH_BYTES * 2 // 3
    await shorten_duplicate_window(stock.connection)
    for number in range(3):
        await stock.publish("chat.acme.u1.-.message.v1", b"%d" % number * large, Nats_Msg_Id="x")
        await asyncio.sleep(0.2)
    await back_up(stock.connection, folder)
    await restore(other, folder)
    assert await records_of(other) == await records_of(stock.connection)
    assert len(await records_of(other)) == 3


async def test_restored_events_keep_their_times_for_every_reader(
    stock: Stock, folder: Path, other: Client
) -> None:
    await fill(stock, 5)
    await back_up(stock.connection, folder)
    await restore(other, folder)
    times = [
        [each.stored_at async for page in read_event_pages(connection, "chat.>", 0) for each in page]
        for connection in (stock.connection, other)
    ]
    assert times[0] == times[1]
    assert len(times[0]) == 5


async def test_times_of_a_restored_log_are_found(stock: Stock, folder: Path, other: Client) -> None:
    await fill(stock, 30)
    await remove(stock.connection, 4, 5, 6)
    await back_up(stock.connection, folder)
    moments = [datetime.fromtimestamp(each.at / 1e9, UTC) for each in await records_of(stock.connection)]
    await restore(other, folder)
    await Stock(other).say("after the restore")
    step = timedelta(microseconds=2)
    for moment in (moments[0] - step, *(each + step for each in moments)):
        before = [each.seq for each in await records_of(other) if each.at / 1e9 < moment.timestamp()]
        assert await find_position(other, moment) == max(before, default=0)
    assert await find_position(other, datetime.now(UTC)) == 31


async def test_a_time_in_a_header_counts_at_its_position_only(stock: Stock) -> None:
    position = await stock.say("one")
    await stock.publish("chat.acme.u1.-.message.v1", {}, Mnemon_Stored_At=f"{position}:1")
    await stock.publish("chat.acme.u1.-.message.v1", {}, Mnemon_Stored_At=f"{position + 2}:x")
    assert [each.at > 10**18 for each in await records_of(stock.connection)] == [True] * 3


async def test_the_backup_of_a_restored_log_is_the_same(
    stock: Stock, folder: Path, other: Client, tmp_path: Path
) -> None:
    await fill(stock, 33)
    await remove(stock.connection, 12)
    await back_up(stock.connection, folder)
    await restore(other, folder)
    await back_up(other, tmp_path / "again")
    assert segments(folder) == segments(tmp_path / "again")
    further = await back_up(other, folder)
    assert (further.new_events, further.rewritten) == (0, 0)


async def test_copies_with_one_id_are_restored(stock: Stock, folder: Path, other: Client) -> None:
    jetstream = stock.connection.jetstream()
    log = (await jetstream.stream_info(LOG)).config
    await jetstream.update_stream(log.evolve(duplicate_window=0.1))
    for number in range(4):
        await stock.publish("chat.acme.u1.-.message.v1", {}, Nats_Msg_Id=f"id {number // 2}")
        await stock.connection.flush()
        while len(await records_of(stock.connection)) <= number:
            await stock.publish("chat.acme.u1.-.message.v1", {}, Nats_Msg_Id=f"id {number // 2}")
    before = await records_of(stock.connection)
    assert [each.headers["Nats-Msg-Id"] for each in before] == ["id 0", "id 0", "id 1", "id 1"]
    await back_up(stock.connection, folder)
    await restore(other, folder)
    assert await records_of(other) == before


async def test_a_further_run_writes_new_events_only(stock: Stock, folder: Path) -> None:
    await fill(stock, 25)
    first = await back_up(stock.connection, folder)
    former = segments(folder)
    await fill(stock, 7)
    second = await back_up(stock.connection, folder)

    assert (first.new_events, second.new_events) == (25, 7)
    assert [each.events for each in second.manifest.segments] == [10, 10, 10, 2]
    assert set(former) - set(segments(folder)) == {first.manifest.segments[2].file.name.split("/")[1]}
    assert second.manifest.position == 32
    assert second.manifest.backup_id == first.manifest.backup_id


async def test_a_further_run_removes_erased_events_from_former_segments(stock: Stock, folder: Path) -> None:
    positions = await fill(stock, 35)
    await back_up(stock.connection, folder)
    await remove(stock.connection, positions[3], *positions[10:20])
    result = await back_up(stock.connection, folder)
    assert result.rewritten == 2
    assert [each.events for each in result.manifest.segments] == [9, 10, 5]
    assert len(segments(folder)) == 3
    backup = await open_backup(repository(folder))
    kept = [record.seq async for records in backup.read_segments() for record in records]
    assert kept == [each for each in positions if each not in {positions[3], *positions[10:20]}]


async def test_a_run_leaves_files_that_it_did_not_write(stock: Stock, folder: Path) -> None:
    foreign = {folder / "deployment" / "values.yaml", folder / "segments" / "talk.jsonl.gz"}
    for path in foreign:
        path.parent.mkdir(parents=True)
        path.write_text("not of a backup")
    (folder / "segments" / "000000000001-000000000001-0123456789ab.jsonl.gz.77.draft").touch()
    for text in "first", "second":
        await stock.say(text)
        manifest = (await back_up(stock.connection, folder)).manifest
    kept = {path for name in ("deployment", "segments") for path in (folder / name).iterdir()}
    assert kept == {*foreign, *(folder / name for name in manifest.file_names)}


async def test_a_killed_run_leaves_a_whole_backup(
    stock: Stock, folder: Path, other: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(stock, 12)
    await back_up(stock.connection, folder)
    await fill(stock, 40)
    with killed_after(3, monkeypatch):
        await back_up(stock.connection, folder)
    manifest = (await open_backup(repository(folder))).manifest
    assert (manifest.position, manifest.is_complete) == (40, False)
    result = await back_up(stock.connection, folder)
    assert result.new_events == 12
    assert {each.split("/")[1] for each in result.manifest.file_names if "segments" in each} == set(
        segments(folder)
    )
    await restore(other, folder)
    assert await records_of(other) == await records_of(stock.connection)


@pytest.mark.long
async def test_an_encrypted_backup_replaces_a_damaged_record_of_the_deployment(
    stock: Stock, folder: Path, tmp_path: Path
) -> None:
    for name in "right", "wrong":
        (tmp_path / name).write_text(name)
    encrypted, other = (
        repository(folder, choose_cipher(passphrase_file=tmp_path / name)) for name in ("right", "wrong")
    )
    await fill(stock, 5)
    result = await run_backup(stock.connection, encrypted, None, ignore_progress, SMALL)
    damaged = result.manifest.deployment
    assert damaged
    (folder / damaged.name).write_bytes(b"damaged")
    with pytest.raises(KeyUnusable, match="the passphrase of the backup"):
        await run_backup(stock.connection, other, None, ignore_progress, SMALL)
    with capture_logs() as lines:
        await run_backup(stock.connection, encrypted, None, ignore_progress, SMALL)
    (found,) = [line["error"] for line in lines if line["event"] == "backup file found missing or damaged"]
    assert damaged.name in found
    backup = await open_backup(encrypted)
    assert await verify_backup(backup, ignore_progress) == 5

    for each in backup.manifest.files:
        (folder / each.name).unlink()
    with pytest.raises(BackupUnusable, match=r"all files of the backup .*: name another destination"):
        await run_backup(stock.connection, encrypted, None, ignore_progress, SMALL)


async def test_a_damaged_segment_is_named(stock: Stock, folder: Path, other: Client) -> None:
    await fill(stock, 25)
    result = await back_up(stock.connection, folder)
    damaged = folder / result.manifest.segments[1].file.name
    body = bytearray(damaged.read_bytes())
    body[40] ^= 1
    damaged.write_bytes(body)
    with pytest.raises(BackupUnusable, match=rf"{damaged.name} in .* is damaged"):
        await restore(other, folder)
    with pytest.raises(RestoreUnfinished):
        await provision(other)
    body[40] ^= 1
    damaged.write_bytes(body)
    await restore(other, folder)
    assert await records_of(other) == await records_of(stock.connection)


async def test_a_missing_segment_is_named(stock: Stock, folder: Path, other: Client) -> None:
    await fill(stock, 5)
    result = await back_up(stock.connection, folder)
    (folder / result.manifest.segments[0].file.name).unlink()
    with pytest.raises(BackupUnusable, match=r"segments/.* is missing"):
        await restore(other, folder)


async def test_a_restore_continues_after_a_kill(
    stock: Stock, folder: Path, other: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(stock, 45)
    await remove(stock.connection, 15, 16)
    await back_up(stock.connection, folder)
    read = BackupRepository.read_file
    monkeypatch.setattr("mnemon_infra.broker.provisioning.restoration.BATCH", 7)

    async def read_two(self: BackupRepository, file: Any) -> bytes:
        if file.name.startswith("segments/000000000033"):
            raise KeyboardInterrupt
        return await read(self, file)

    with monkeypatch.context() as patch:
        patch.setattr(BackupRepository, "read_file", read_two)
        with pytest.raises(KeyboardInterrupt):
            await restore(other, folder)
    written = await read_log_end(other.jetstream())
    assert 20 <= written < 33
    with pytest.raises(RestoreUnfinished):
        await provision(other)
    await restore(other, folder)
    assert await records_of(other) == await records_of(stock.connection)
    assert (await restore(other, folder)).is_repeated


async def test_a_restored_log_with_newer_events_is_refused(stock: Stock, folder: Path, other: Client) -> None:
    await fill(stock, 3)
    await back_up(stock.connection, folder)
    await restore(other, folder)
    await fill(Stock(other), 4)
    before = await records_of(other)
    with pytest.raises(
        LogNotEmpty, match="already has this backup and 4 newer events, so nothing was written"
    ):
        await restore(other, folder)
    assert await records_of(other) == before


async def test_consumers_do_not_start_on_an_unfinished_restore(stock: Stock) -> None:
    jetstream = stock.connection.jetstream()
    log = (await jetstream.stream_info(LOG)).config
    await require_streams(stock.connection)
    await jetstream.update_stream(log.evolve(metadata={"mnemon-restore": "x"}))
    with pytest.raises(RestoreUnfinished, match="run the same `mnemon restore` again"):
        await require_streams(stock.connection)


async def test_a_log_with_events_is_not_overwritten(stock: Stock, folder: Path, other: Client) -> None:
    await fill(stock, 3)
    await back_up(stock.connection, folder)
    await provision(other)
    await Stock(other).say("mine")
    with pytest.raises(LogNotEmpty, match="position 1"):
        await restore(other, folder)
    assert len(await records_of(other)) == 1


async def test_an_empty_log_is_replaced(stock: Stock, folder: Path, other: Client) -> None:
    await fill(stock, 3)
    await back_up(stock.connection, folder)
    await provision(other)
    await restore(other, folder)
    assert await records_of(other) == await records_of(stock.connection)


async def test_settings_of_another_origin_are_not_overwritten(
    stock: Stock, folder: Path, other: Client
) -> None:
    await back_up(stock.connection, folder)
    await provision(other)
    await change_settings(other, lambda _: {"policy": {"max_length": 77}})
    with pytest.raises(LogNotEmpty, match="settings"):
        await restore(other, folder)


async def test_api_keys_of_another_origin_are_not_mixed_with_those_of_the_backup(
    stock: Stock, folder: Path, other: Client
) -> None:
    await (await open_api_keys(stock.connection)).add(issue_key("acme").stored)
    await back_up(stock.connection, folder)
    await provision(other)
    await (await open_api_keys(other)).add(issue_key("acme").stored)
    with pytest.raises(LogNotEmpty, match="API keys"):
        await restore(other, folder)


async def test_a_client_that_writes_meanwhile_ends_the_restore(
    stock: Stock, folder: Path, other: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(stock, 25)
    await back_up(stock.connection, folder)
    read = BackupRepository.read_file
    monkeypatch.setattr("mnemon_infra.broker.provisioning.restoration.BATCH", 5)
    monkeypatch.setattr("mnemon_infra.broker.provisioning.restoration.PAUSE", 0.01)

    async def read_and_write(self: BackupRepository, file: Any) -> bytes:
        if file.name.startswith("segments/000000000011"):
            await Stock(other).say("foreign")
        return await read(self, file)

    monkeypatch.setattr(BackupRepository, "read_file", read_and_write)
    with pytest.raises(ForeignEvent):
        await restore(other, folder)


async def test_a_backup_of_another_log_is_not_continued(stock: Stock, folder: Path, other: Client) -> None:
    await fill(stock, 5)
    await back_up(stock.connection, folder)
    await provision(other)
    with pytest.raises(BackupUnusable, match="another log"):
        await back_up(other, folder)
    await fill(Stock(other), 6)
    with pytest.raises(BackupUnusable, match=r"position 5 .* another log"):
        await back_up(other, folder)


async def test_settings_of_all_tenants_survive_with_their_history(
    stock: Stock, folder: Path, other: Client
) -> None:
    await change_settings(stock.connection, lambda _: {"policy": {"max_length": 77}})
    await change_settings(stock.connection, lambda _: {"policy": {"max_length": 78}})
    await change_settings(stock.connection, lambda _: {"policy": {"max_length": 50}}, "ac me")
    await back_up(stock.connection, folder)
    await restore(other, folder)
    for tenant in None, "ac me":
        before, after = await read_history(stock.connection, tenant), await read_history(other, tenant)
        assert [replace(each, at=before[0].at) for each in after] == [
            replace(each, at=before[0].at) for each in before
        ]
        assert all(
            abs(one.at - two.at) < timedelta(milliseconds=1) for one, two in zip(before, after, strict=True)
        )
    assert len(await read_history(other)) == 2


async def test_former_settings_are_found_by_time(stock: Stock, folder: Path, other: Client) -> None:
    await change_settings(stock.connection, lambda _: {"policy": {"max_length": 77}})
    moment = datetime.now(UTC)
    await change_settings(stock.connection, lambda _: {"policy": {"max_length": 78}})
    await back_up(stock.connection, folder)
    await restore(other, folder)
    settings = await read_settings_at(other, "acme", moment)
    assert settings is not None
    assert settings.policy.max_length == 77


async def test_settings_keep_their_times_after_more_changes_than_the_history_keeps(
    stock: Stock, folder: Path, other: Client
) -> None:
    for number in range(SETTINGS_KEPT + 2):
        settings = {"policy": {"max_length": 50 + number}}
        await change_settings(stock.connection, partial(lambda changed, _: changed, settings))
    await back_up(stock.connection, folder)
    await restore(other, folder)
    before, after = await read_history(stock.connection), await read_history(other)
    assert [round(each.at.timestamp(), 3) for each in after] == [
        round(each.at.timestamp(), 3) for each in before
    ]


async def test_an_encrypted_backup_shows_no_text(
    stock: Stock, folder: Path, other: Client, tmp_path: Path
) -> None:
    import pyrage

    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "key.txt").write_text(f"# a comment\n{identity}\n")
    public = choose_cipher([str(identity.to_public())])
    await fill(stock, 15, "acme.secretive.-")
    for _ in range(2):
        result = await run_backup(stock.connection, repository(folder, public), None, ignore_progress, SMALL)
        await fill(stock, 3)
    assert result.manifest.encryption == "age"
    assert {Path(each).suffix for each in segments(folder)} == {".age"}
    assert b"secretive" not in b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file())
    with pytest.raises(BackupUnusable, match="encrypted: give"):
        await open_backup(repository(folder))
    secret = choose_cipher(identity=tmp_path / "key.txt")
    backup = await open_backup(repository(folder, secret))
    await restore_log(other, backup, NO_ERASURES, 1, ignore_progress)
    assert await records_of(other) == (await records_of(stock.connection))[:18]


@pytest.mark.parametrize("has_passphrase", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_a_killed_run_leaves_a_whole_encrypted_backup(
    stock: Stock,
    folder: Path,
    other: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_passphrase: bool,
) -> None:
    import pyrage

    secret = pyrage.x25519.Identity.generate()
    key = tmp_path / "key.txt"
    key.write_text("correct horse battery staple" if has_passphrase else str(secret))
    encrypted = repository(
        folder,
        choose_cipher(passphrase_file=key)
        if has_passphrase
        else choose_cipher([str(secret.to_public())], identity=key),
    )
    await fill(stock, 5)
    await run_backup(stock.connection, encrypted, None, ignore_progress, SMALL)
    before = await records_of(stock.connection)
    await fill(stock, 1)

    with killed_after(0, monkeypatch):
        await run_backup(stock.connection, encrypted, None, ignore_progress, SMALL)
    await restore_log(other, await open_backup(encrypted), NO_ERASURES, 1, ignore_progress)
    assert await records_of(other) == before


@pytest.mark.parametrize(
    ("first", "second", "next_step"),
    [
        # Encryption with a passphrase takes a second of CPU time for each file.
        pytest.param("one", "other", "the passphrase of the backup", marks=pytest.mark.long),
        pytest.param("one", "recipient", "give --passphrase-file", marks=pytest.mark.long),
        ("recipient", "one", "or --recipient"),
    ],
)
async def test_a_backup_is_not_continued_with_another_passphrase(
    stock: Stock, folder: Path, tmp_path: Path, first: str, second: str, next_step: str
) -> None:
    import pyrage

    def build_cipher(name: str) -> BackupCipher:
        if name == "recipient":
            return choose_cipher([str(pyrage.x25519.Identity.generate().to_public())])
        (tmp_path / name).write_text(name)
        return choose_cipher(passphrase_file=tmp_path / name)

    await fill(stock, 12)
    place = repository(folder, build_cipher(first))
    await run_backup(stock.connection, place, None, ignore_progress, SMALL)
    before = segments(folder)
    await fill(stock, 3)
    with pytest.raises(KeyUnusable, match=next_step):
        await run_backup(
            stock.connection, repository(folder, build_cipher(second)), None, ignore_progress, SMALL
        )
    assert segments(folder) == before
    result = await run_backup(stock.connection, place, None, ignore_progress, SMALL)
    assert result.new_events == 3


async def test_a_bucket_keeps_a_backup(stock: Stock, other: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_bucket() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        place = BackupRepository(open_object_store(f"s3://{BUCKET}/mnemon"), NoCipher())
        positions = await fill(stock, 25)
        await run_backup(stock.connection, place, None, ignore_progress, SMALL)
        await remove(stock.connection, positions[4])
        result = await run_backup(stock.connection, place, None, ignore_progress, SMALL)
        assert (result.new_events, result.rewritten, result.removed_files) == (0, 1, 1)
        await restore_log(other, await open_backup(place), NO_ERASURES, 1, ignore_progress)
    assert await records_of(other) == await records_of(stock.connection)


def entry(user: str, position: int, at: int, **fields: Any) -> RegisterEntry:
    fields = {"up_to_seq": ALL_BEFORE, **fields}
    event = UserErasedV1(**fields)
    return RegisterEntry(
        tenant="acme", user=user, event_id=f"erasure of {user}", position=position, at=at, event=event
    )


async def test_erasures_after_the_backup_are_applied_again(stock: Stock, folder: Path, other: Client) -> None:
    kept = await fill(stock, 12, "acme.u1.-")
    await fill(stock, 5, "acme.u2.-")
    await fill(stock, 5, "acme.u3.trip")
    others = await fill(stock, 5, "acme.u3.work")
    await back_up(stock.connection, folder)
    backup = await open_backup(repository(folder))
    later = backup.manifest.last_stored_at + 1
    entries = [
        entry("u1", 3, backup.manifest.last_stored_at - 1),
        entry("u2", 40, later),
        entry("u3", 41, later, up_to_seq=41, conversation="trip", derived=(20, 39), discarded_seq=38),
    ]
    result = await restore(other, folder, find_later_erasures(backup, entries))
    assert [each.user for each in result.erasures] == ["u2", "u3"]
    assert (result.events, result.left_out) == (17, 10)
    *events, first, second = await records_of(other)
    assert [each.seq for each in events] == [*kept, *others]
    assert (first.seq, first.subject, first.headers["Nats-Msg-Id"]) == (
        28,
        "memory.acme.u2.user.erased.v1",
        "erasure of u2",
    )
    assert UserErasedV1.parse(second.payload) == UserErasedV1(
        up_to_seq=41, conversation="trip", derived=(20,)
    )


async def test_a_repeated_restore_reports_the_events_that_the_first_left_out(
    stock: Stock, folder: Path, other: Client
) -> None:
    await fill(stock, 12, "acme.u1.-")
    await fill(stock, 5, "acme.u2.-")
    await back_up(stock.connection, folder)
    backup = await open_backup(repository(folder))
    erasures = find_later_erasures(backup, [entry("u1", 40, backup.manifest.last_stored_at + 1)])
    first = await restore(other, folder, erasures)
    assert (first.events, first.left_out, first.is_repeated) == (5, 12, False)
    assert await restore(other, folder, erasures) == replace(first, is_repeated=True)
    later = find_later_erasures(backup, [entry("u2", 50, backup.manifest.last_stored_at + 2)])
    again = await restore(other, folder, later)
    assert (again.events, again.left_out) == (5, 12), "erasures that no run applied do not count"


async def test_a_later_run_of_a_restore_removes_what_was_erased_meanwhile(
    stock: Stock, folder: Path, other: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(stock, 12, "acme.u1.-")
    kept = await fill(stock, 3, "acme.u2.-")
    await fill(stock, 3, "acme.u1.-")
    await back_up(stock.connection, folder)
    backup = await open_backup(repository(folder))
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(
            "mnemon.operations.restore.run.remove_fillers", lambda _: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        await restore(other, folder)
    erasures = find_later_erasures(backup, [entry("u1", 40, backup.manifest.last_stored_at + 1)])
    await restore(other, folder, erasures)
    assert [each.seq for each in await records_of(other)] == [*kept, 19]


async def test_an_erasure_in_the_log_is_not_applied_again(stock: Stock, folder: Path) -> None:
    await stock.publish("memory.acme.u1.user.erased.v1", {"up_to_seq": 1}, Nats_Msg_Id="erasure of u1")
    await back_up(stock.connection, folder)
    backup = await open_backup(repository(folder))
    late = backup.manifest.last_stored_at + 200
    assert find_later_erasures(backup, [entry("u1", 1, late)]).entries == []
    earlier = replace(backup, manifest=Manifest(**backup.manifest.model_dump() | {"position": 0}))
    assert len(find_later_erasures(earlier, [entry("u1", 1, late)]).entries) == 1


async def test_an_erasure_that_is_nested_too_deeply_is_backed_up(
    stock: Stock, folder: Path, other: Client
) -> None:
    await stock.publish("memory.acme.u1.user.erased.v1", b"[" * 5000)
    await back_up(stock.connection, folder)
    (erasure,) = (await open_backup(repository(folder))).record.erasures
    assert erasure.event_id == "LOG:1"
    await restore(other, folder)
    assert await records_of(other) == await records_of(stock.connection)


async def test_two_runs_do_not_write_one_backup(stock: Stock, folder: Path) -> None:
    async with repository(folder).lock():
        with pytest.raises(BackupUnusable, match="another process"):
            await back_up(stock.connection, folder)


async def test_two_runs_do_not_write_one_backup_in_a_bucket(
    stock: Stock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_lock, "RENEWAL_SECONDS", 0.0)
    monkeypatch.setattr(bucket_lock, "POLL_SECONDS", 0.05)
    with serve_bucket() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        location = f"s3://{BUCKET}/{tmp_path.name}"
        holder, other = (BackupRepository(open_object_store(location), NoCipher()) for _ in range(2))

        async def keep_alive() -> None:
            while True:
                await holder.write_file("segments/", ".jsonl.gz", b"1")

        async with holder.lock(), run_task(keep_alive()):
            with pytest.raises(BackupUnusable, match=f"another process is writing .* {location}"):
                await run_backup(stock.connection, other, None, ignore_progress)
        assert (await run_backup(stock.connection, other, None, ignore_progress)).manifest.is_complete


async def test_an_empty_log_can_be_backed_up(stock: Stock, folder: Path, other: Client) -> None:
    await back_up(stock.connection, folder)
    await restore(other, folder)
    assert await Stock(other).say("first") == 1


async def test_a_log_whose_events_are_all_erased_keeps_its_position(
    stock: Stock, folder: Path, other: Client
) -> None:
    await remove(stock.connection, *await fill(stock, 4))
    await back_up(stock.connection, folder)
    await restore(other, folder)
    assert await Stock(other).say("fifth") == 5
