"""Restore of a backup into a cluster of three NATS servers, and a backup of the cluster."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from nats.errors import Error

from mnemon.operations.backup.encryption import NoCipher
from mnemon.operations.backup.repository import BackupRepository
from mnemon.operations.backup.run import SegmentSize, run_backup
from mnemon.operations.restore.later_erasures import LaterErasures
from mnemon.operations.restore.run import open_backup, restore_log
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning import restoration
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.settings.history import read_history
from mnemon_infra.settings.store import change_settings
from mnemon_infra.storage.object_store import LocalStore
from tests.integration.mnemon.operations.test_backup import empty_server, ignore_progress, records_of
from tests.support.servers.nats_cluster import cluster
from tests.support.stock_client import Stock

EVENTS = 3000


@pytest.mark.long
async def test_a_backup_moves_into_a_cluster_and_out_of_it(
    stock: Stock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoration, "BATCH", 20)
    await append_events(
        stock.connection,
        [
            LogEvent(f"chat.acme.u{number % 9}.-.message.v1", b'{"content":"%d"}' % number, f"id {number}")
            for number in range(EVENTS)
        ],
    )
    for position in range(5, EVENTS, 11):
        await stock.connection.jetstream().delete_msg(LOG, position)
    await change_settings(stock.connection, lambda _: {"policy": {"max_length": 77}})
    first = BackupRepository(LocalStore(tmp_path / "first"), NoCipher())
    await run_backup(stock.connection, first, None, ignore_progress, SegmentSize(500, 1 << 20))
    expected = await records_of(stock.connection)

    async with cluster(tmp_path / "cluster") as servers:
        connection = await connect(servers.url, name="test")
        killed = asyncio.Event()

        async def kill_leader() -> None:
            while True:
                with suppress(Error):  # the log has no leader yet
                    if await read_log_end(connection.jetstream(timeout=1)) > EVENTS // 5:
                        break
                await asyncio.sleep(0.01)
            await servers.leader_killed()
            killed.set()

        killing = asyncio.create_task(kill_leader())
        backup = await open_backup(first)
        result = await restore_log(connection, backup, LaterErasures([]), 3, ignore_progress)
        await killing
        assert killed.is_set()
        assert result.events == len(expected)
        assert set((await servers.copies()).values()) == {3}
        assert await records_of(connection) == expected
        second = BackupRepository(LocalStore(tmp_path / "second"), NoCipher())
        await run_backup(connection, second, None, ignore_progress, SegmentSize(500, 1 << 20))
        await connection.close()

    async with empty_server(tmp_path / "alone") as connection:
        await restore_log(connection, await open_backup(second), LaterErasures([]), 1, ignore_progress)
        assert await records_of(connection) == expected
        assert len(await read_history(connection)) == 1
        assert await Stock(connection).say("next") == EVENTS + 1
