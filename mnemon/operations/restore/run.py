"""Run of a restore: writes and verifies the log, then adds later erasures, settings and API keys."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from nats.aio.client import Client

from mnemon.operations.backup.deployment_record import DeploymentRecord
from mnemon.operations.backup.encryption import require_same_encryption
from mnemon.operations.backup.manifest import MANIFEST_NAME, BackupUnusable, Manifest
from mnemon.operations.backup.repository import BackupRepository
from mnemon.operations.backup.run import read_records
from mnemon.operations.backup.segments import LogRecord, decode_segment
from mnemon.operations.restore.later_erasures import LaterErasures
from mnemon.operations.restore.positions import build_message, fill_gap, plan_messages, renumber_entries
from mnemon_contracts.streams import API_KEYS, LOG, SETTINGS
from mnemon_infra.broker.dead_letters.listing import remove_message
from mnemon_infra.broker.provisioning.restoration import (
    ExactWriter,
    open_restored_log,
    release_log,
    remove_fillers,
    write_entries,
)
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.broker.streams.restored_log import FILLER_SUBJECT
from mnemon_infra.storage.erasure_register import RegisterEntry

RestoreStep = Literal["events", "verification"]

RestoreProgress = Callable[[RestoreStep, int, int], None]
"""Function that receives the step, the log position that it has reached, and the last position."""


class RestoreDiffers(Exception):
    """The restored log differs from the backup; the message names the first position that differs."""

    def __init__(self, position: int) -> None:
        super().__init__(
            f"the restored log differs from the backup at position {position:,}: another client wrote to the "
            "log, or the backup has changed since the restore began. Stop all bots and consumers. Then "
            "restore into another folder, or delete the stream on your servers (nats stream rm "
            f"{LOG}) and restore again"
        )


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup to restore, with its manifest and its record of the deployment."""

    repository: BackupRepository
    manifest: Manifest
    record: DeploymentRecord

    @property
    def mark(self) -> str:
        """Mark of a restore: the id of the backup and its last log position.

        A restore writes the mark to the metadata of the log. A later run continues only a log with the same
        mark.
        """
        return f"{self.manifest.backup_id}:{self.manifest.position}"

    async def read_segments(self) -> AsyncIterator[list[LogRecord]]:
        """Yield the events of each segment, after a check of the segment.

        Raises:
            BackupUnusable: a segment is missing or damaged; the message names it.
            KeyUnusable: a segment cannot be decrypted.
            StoreUnavailable: the backup cannot be read.
        """
        for entry in self.manifest.segments:
            records = decode_segment(await self.repository.read_file(entry.file), entry.file.name)
            if (len(records), records[0].seq, records[-1].seq) != (entry.events, entry.first, entry.last):
                raise BackupUnusable(
                    f"{entry.file.name} in {self.repository.location} does not have the events that the "
                    "manifest lists: use another copy of the backup"
                )
            yield records


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Result of a restore.

    Attributes:
        events: events in the restored log, without the applied erasures.
        left_out: events of the backup that later erasures cover.
        erasures: erasures that the backup lacks. If `is_repeated`, this run has applied none of them.
        is_repeated: whether an earlier run had finished the log.
    """

    manifest: Manifest
    events: int
    left_out: int
    erasures: Sequence[RegisterEntry]
    is_repeated: bool = False


async def open_backup(repository: BackupRepository) -> Backup:
    """Read manifest and record of a backup.

    Raises:
        BackupUnusable: there is no backup, a file is missing or damaged, the manifest has a newer format, or
            the backup is encrypted and no key is given, or plain and a key is given.
        KeyUnusable: the files cannot be decrypted.
        ModuleNotFoundError: the cipher has a passphrase, and pyrage is not installed.
        StoreUnavailable: the backup cannot be read.
    """
    manifest = await repository.read_manifest()
    if manifest is None:
        raise BackupUnusable(
            f"there is no backup in {repository.location}: the file {MANIFEST_NAME} is missing. Name the "
            "folder or the bucket that `mnemon backup` wrote to"
        )
    require_same_encryption(repository.cipher, manifest.encryption, repository.location)
    if manifest.deployment is None:
        raise BackupUnusable(
            f"{MANIFEST_NAME} in {repository.location} names no record of the deployment: use another copy "
            "of the backup"
        )
    body = await repository.read_file(manifest.deployment)
    return Backup(repository, manifest, DeploymentRecord.parse(body, manifest.deployment.name))


async def verify_backup(backup: Backup, progress: RestoreProgress) -> int:
    """Read the whole backup and compare it with its manifest. Return the number of events.

    Raises:
        BackupUnusable: a file is missing or damaged; the message names it.
        KeyUnusable: a file cannot be decrypted.
        StoreUnavailable: the backup cannot be read.
    """
    events = 0
    async for records in backup.read_segments():
        events += len(records)
        progress("verification", records[-1].seq, backup.manifest.position)
    return events


def find_later_erasures(backup: Backup, entries: Sequence[RegisterEntry]) -> LaterErasures:
    """Return the erasures of a register that a backup lacks.

    Every erasure up to the last event of the backup is in the backup, or a later erasure of the same user in
    the backup has removed it.
    """
    known = {
        ((each.tenant, each.user), each.event_id)
        for each in backup.record.erasures
        if each.position <= backup.manifest.position
    }
    later = [each for each in entries if each.at > backup.manifest.last_stored_at]
    return LaterErasures([each for each in later if (each.owner, each.event_id) not in known])


async def restore_log(
    connection: Client,
    backup: Backup,
    erasures: LaterErasures,
    replicas: int,
    progress: RestoreProgress,
) -> RestoreResult:
    """Restore log, settings and API keys into empty servers, and provision the servers.

    Until the end, the log is marked as unfinished, and no process of mnemon serves such a log. A run with the
    same backup continues a run that was killed.

    The connection is that of an operator. `erasures` are those that the backup lacks. Each stream has
    `replicas` copies.

    Raises:
        BackupUnusable: a segment is missing or damaged; the message names it.
        KeyUnusable: a segment cannot be decrypted.
        LogNotEmpty: the servers have data of another origin, the log has received events since it was
            restored, or a consumer runs.
        ForeignEvent: another client wrote to the log.
        MessageTooLarge: an event of the backup is larger than the server accepts.
        RestoreDiffers: the restored log differs from the backup.
        StoreUnavailable: the backup cannot be read.
        nats.errors.Error: the server does not answer.
    """
    return await _RestoreRun(connection, backup, erasures, progress).perform(replicas)


class _RestoreRun:
    def __init__(
        self, connection: Client, backup: Backup, erasures: LaterErasures, progress: RestoreProgress
    ) -> None:
        self._connection = connection
        self._backup = backup
        self._erasures = erasures
        self._progress = progress
        self._left_out = 0

    async def perform(self, replicas: int) -> RestoreResult:
        connection, manifest = self._connection, self._backup.manifest
        first = manifest.segments[0].first if manifest.segments else manifest.position + 1
        mark = self._backup.mark
        state = await open_restored_log(connection, mark, first, replicas)
        if state.is_finished:
            self._left_out = state.left_out
        else:
            await self._write_events(state.last)
            await remove_fillers(connection)
            await self._verify_log()
            await self._apply_erasures()
            record = self._backup.record
            for bucket, entries in ((SETTINGS, record.settings), (API_KEYS, record.api_keys)):
                messages = [build_message(each) for each in renumber_entries(entries)]
                await write_entries(connection, bucket, messages, replicas)
            await release_log(connection, mark, self._left_out)
        await provision(connection, replicas)
        return RestoreResult(
            manifest,
            manifest.events - self._left_out,
            self._left_out,
            self._erasures.entries,
            is_repeated=state.is_finished,
        )

    async def _write_events(self, last: int) -> None:
        """Write the events after the position `last`, and fillers at positions without an event."""
        manifest = self._backup.manifest
        writer = ExactWriter(self._connection, last)
        reached = last
        async for records in self._backup.read_segments():
            if records[-1].seq > reached:
                for message in plan_messages(self._select_kept_events(records), reached):
                    await writer.write(message)
                    reached += 1
                    if not reached % 1000:
                        self._progress("events", reached, manifest.position)
        for message in fill_gap(reached, manifest.position):
            await writer.write(message)
        await writer.flush()
        self._progress("events", manifest.position, manifest.position)

    async def _verify_log(self) -> None:
        """Compare the restored log with the backup, event by event.

        Remove events that an interrupted run wrote before the register had the erasure that covers them.
        """
        manifest = self._backup.manifest
        stored = self._stream_stored(manifest.position)
        async with aclosing(stored):
            async for records in self._backup.read_segments():
                for expected in records:
                    is_removed = self._erasures.removes(expected)
                    self._left_out += is_removed
                    found = await anext(stored, None) if not is_removed else None
                    while found is not None and found.seq < expected.seq:
                        if not self._erasures.removes(found):
                            raise RestoreDiffers(found.seq)
                        await remove_message(self._connection, LOG, found.seq)
                        found = await anext(stored, None)
                    if not is_removed and found != expected:
                        raise RestoreDiffers(expected.seq)
                self._progress("verification", records[-1].seq, manifest.position)
            async for found in stored:
                if not self._erasures.removes(found):
                    raise RestoreDiffers(found.seq)
                await remove_message(self._connection, LOG, found.seq)

    async def _stream_stored(self, up_to: int) -> AsyncGenerator[LogRecord, None]:
        async with aclosing(read_records(self._connection, after=0, up_to=up_to)) as pages:
            async for page in pages:
                for record in page:
                    if record.subject != FILLER_SUBJECT:  # a replica may not have removed the fillers yet
                        yield record

    async def _apply_erasures(self) -> None:
        """Append the events of later erasures: the consumers apply them as they apply any erasure."""
        position = self._backup.manifest.position
        end = await read_log_end(self._connection.jetstream())
        writer = ExactWriter(self._connection, end)
        for message in self._erasures.build_messages(position)[end - position :]:
            await writer.write(message)
        await writer.flush()

    def _select_kept_events(self, records: Sequence[LogRecord]) -> list[LogRecord]:
        return [each for each in records if not self._erasures.removes(each)]
