"""Run of a backup: copies new events of the log, and rewrites segments from which events were removed."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final, NamedTuple
from uuid import uuid4

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon.operations.backup.deployment_record import read_deployment_record
from mnemon.operations.backup.encryption import require_same_encryption
from mnemon.operations.backup.manifest import (
    DEPLOYMENT_FOLDER,
    SEGMENT_BYTES,
    SEGMENT_EVENTS,
    SEGMENT_FOLDER,
    BackupUnusable,
    Manifest,
    SegmentEntry,
    select_kept_segments,
)
from mnemon.operations.backup.repository import BackupRepository
from mnemon.operations.backup.segments import (
    SUFFIX,
    EncodedSegment,
    LogRecord,
    SegmentEncoder,
    build_record,
)
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.provisioning.presence import StreamsMissing
from mnemon_infra.broker.streams.restored_log import require_finished_restore
from mnemon_infra.broker.streams.stream_reader import count_messages_from, read_stream

BackupProgress = Callable[[int, int], None]
"""Function that receives the last copied log position, and the last position of the range being copied.

The range is a segment from which events were removed, or all events after the last full segment.
"""


class SegmentSize(NamedTuple):
    """Limits at which a segment is full: its number of events, and their encoded bytes before compression."""

    events: int = SEGMENT_EVENTS
    bytes: int = SEGMENT_BYTES


USUAL_SIZE: Final = SegmentSize()


@dataclass(frozen=True, slots=True)
class BackupResult:
    """Result of one run of a backup.

    Attributes:
        manifest: the manifest of the backup after the run.
        new_events: events that the backup did not have before.
        rewritten: segments that were written again because events in them were removed from the log.
        removed_files: files that were removed because the manifest no longer names them.
    """

    manifest: Manifest
    new_events: int
    rewritten: int
    removed_files: int


async def run_backup(
    connection: Client,
    repository: BackupRepository,
    logins: str | None,
    progress: BackupProgress,
    size: SegmentSize = USUAL_SIZE,
) -> BackupResult:
    """Bring a backup up to the current end of the log, while bots and consumers work.

    The manifest is replaced as a whole, after each segment that reaches beyond the former backup, and at the
    end. If a run is killed, the files that the last manifest names can be restored, and the next run
    continues from them.

    The connection needs permission to read all streams. `logins` is the text of the file with the logins;
    None if there is no such file.

    Raises:
        BackupUnusable: another process writes to the destination, the folder cannot be written, or the
            backup there is damaged, of another log, or encrypted in another way.
        KeyUnusable: the backup has another passphrase than the cipher, or only one of both has a passphrase.
        StoreUnavailable: the destination cannot be read or written.
        ModuleNotFoundError: the cipher has a passphrase, and pyrage is not installed.
        StreamsMissing: there is no log.
        RestoreUnfinished: a restore into the log has not ended.
        nats.errors.Error: the server does not answer.
    """
    async with repository.lock():
        return await _BackupRun(connection, repository, progress, size).perform(logins)


async def read_records(
    connection: Client, *, after: int, up_to: int
) -> AsyncGenerator[list[LogRecord], None]:
    """Yield the events of the log within a range, in log order, page by page.

    Raises:
        nats.errors.Error: the server does not answer, or the log is absent.
    """
    async with aclosing(read_stream(connection, LOG, after=after, up_to=up_to)) as pages:
        async for page in pages:
            yield [build_record(message) for message, _ in page]


class _BackupRun:
    def __init__(
        self, connection: Client, repository: BackupRepository, progress: BackupProgress, size: SegmentSize
    ) -> None:
        self._connection = connection
        self._repository = repository
        self._progress = progress
        self._size = size
        self._known = 0
        self._new_events = 0

    async def perform(self, logins: str | None) -> BackupResult:
        former = await self._repository.read_manifest()
        end = await self._read_log_end()
        if former:
            require_same_encryption(self._repository.cipher, former.encryption, self._repository.location)
            await self._repository.require_same_key(former)
            await self._require_same_log(former, end)
            self._known = former.position
        kept, after = select_kept_segments(former.segments if former else ())
        manifest = await self._begin_manifest(former, logins, end)
        changed = await self._find_changed_segments(kept)
        segments: list[SegmentEntry] = []
        for each in kept:
            if each not in changed:
                segments.append(each)
                continue
            segments += [
                entry.model_copy(update={"is_full": True})
                async for entry in self._write_segments(after=each.first - 1, up_to=each.last)
            ]
        async for entry in self._write_segments(after=after, up_to=end):
            segments.append(entry)
            if self._known <= entry.last < end:  # the former manifest covers no later event
                await self._repository.write_manifest(
                    manifest.model_copy(update={"segments": tuple(segments), "position": entry.last})
                )
        manifest = manifest.model_copy(
            update={"segments": tuple(segments), "position": end, "is_complete": True}
        )
        await self._repository.write_manifest(manifest)
        removed = await self._repository.remove_unlisted_files(manifest)
        return BackupResult(manifest, self._new_events, len(changed), removed)

    async def _begin_manifest(self, former: Manifest | None, logins: str | None, end: int) -> Manifest:
        """Write the record of the deployment, and return a manifest without segments."""
        record = (await read_deployment_record(self._connection, logins, end)).encode()
        return Manifest(
            mnemon=version("mnemon"),
            backup_id=former.backup_id if former else uuid4().hex,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            is_complete=False,
            encryption=self._repository.cipher.name,
            position=0,
            deployment=await self._repository.write_file(f"{DEPLOYMENT_FOLDER}/", ".json", record),
            needs_login=bool(self._connection._server_info.get("auth_required")),
        )

    async def _read_log_end(self) -> int:
        try:
            info = await self._connection.jetstream().stream_info(LOG)
        except NotFoundError as error:
            raise StreamsMissing([LOG]) from error
        require_finished_restore(info)
        return info.state.last_seq

    async def _require_same_log(self, former: Manifest, end: int) -> None:
        """Check that the backup is of this log.

        The log must not end before the backup. The newest event that ends a segment and is still in the log
        must have the same time in the log and in the backup.
        """
        location = self._repository.location
        if end < former.position:
            raise BackupUnusable(
                f"the log ends at position {end:,}, and the backup in {location} has events up to "
                f"{former.position:,}: the log has lost events, or the backup is of another log. If events "
                "are lost, restore this backup (`mnemon restore`); else name another destination"
            )
        for segment in reversed(former.segments):
            page = read_records(self._connection, after=segment.last - 1, up_to=segment.last)
            found = [record async for records in page for record in records]
            if found and found[0].at != segment.last_stored_at:
                raise BackupUnusable(
                    f"the event at position {segment.last:,} of the log differs from that of the backup in "
                    f"{location}: the backup is of another log. Name another destination"
                )
            if found:
                return

    async def _find_changed_segments(self, segments: Sequence[SegmentEntry]) -> list[SegmentEntry]:
        """Return the segments with events that the log no longer has."""
        if not segments:
            return []
        if await self._count_events(1, segments[-1].last) == sum(each.events for each in segments):
            return []  # the usual case
        # The log removes events, and never changes one.
        return [each for each in segments if await self._count_events(each.first, each.last) != each.events]

    async def _count_events(self, first: int, last: int) -> int:
        beyond = await count_messages_from(self._connection, LOG, last + 1)
        return await count_messages_from(self._connection, LOG, first) - beyond

    async def _write_segments(self, *, after: int, up_to: int) -> AsyncIterator[SegmentEntry]:
        """Write the events of a range of the log, and yield each segment when it is stored."""
        encoder = SegmentEncoder(*self._size)
        async with aclosing(read_records(self._connection, after=after, up_to=up_to)) as pages:
            async for page in pages:
                for record in page:
                    self._new_events += record.seq > self._known
                    encoder.add(record)
                    if encoder.is_full:
                        yield await self._store_segment(encoder.take_segment())
                self._progress(page[-1].seq, up_to)
        if not encoder.is_empty:
            yield await self._store_segment(encoder.take_segment())

    async def _store_segment(self, segment: EncodedSegment) -> SegmentEntry:
        prefix = f"{SEGMENT_FOLDER}/{segment.first:012}-{segment.last:012}-"
        return SegmentEntry(
            first=segment.first,
            last=segment.last,
            last_stored_at=segment.last_stored_at,
            events=segment.events,
            is_full=segment.is_full,
            file=await self._repository.write_file(prefix, SUFFIX, segment.body),
        )
