"""A live copy of memory as Markdown: the mirror rewrites a user's file when the memory in it has changed.

The subjects of new events in the log name the users whose memory has changed. Once the rows have these
events, the mirror reads the memory from the rows. Changes of one user that arrive together cause one write
of the file.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon.operations.exports.markdown import generate_lines
from mnemon.operations.exports.mirror_folder import MirrorFolder, MirrorScope
from mnemon.operations.exports.run import stream_owners
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import (
    InvalidSubject,
    Owner,
    build_tenant_filters,
    build_user_filters,
    parse_subject,
)
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_log_end
from mnemon_infra.broker.streams.log_tail import stream_log_tail
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.memory.export import open_memory

log = structlog.get_logger("export")

SHOWN_EVENTS: Final = frozenset(
    {
        "fact.saved",
        "fact.updated",
        "fact.merged",
        "fact.forgotten",
        "fact.expired",
        "fact.evicted",
        "profile.set",
        "task.added",
        "task.done",
        "task.removed",
        "user.erased",
    }
)
"""Events that may change the content of a user's file."""

DATABASE_TIMEOUT: Final = 60.0
"""Seconds for which the mirror retries to read one user's memory while the database does not answer."""

_PAUSE: Final = 1.0
"""Seconds between two attempts to read a user's memory."""

_REPORTED_USERS: Final = 1000
"""Number of users after which `Mirror.write_all` reports the counts."""

_PROJECTION_WAIT: Final = 30.0
"""Seconds that the rows may lack an event before the mirror logs that `persist` fell behind."""


@dataclass(slots=True)
class MirrorCounts:
    """Progress of a mirror.

    Attributes:
        position: log position up to which the folder has all changes.
        written: number of files that were written.
        removed: number of files that were removed.
    """

    position: int = 0
    written: int = 0
    removed: int = 0


class Mirror:
    """Writer that keeps a folder of Markdown files equal to the memory of the users in a scope."""

    def __init__(
        self,
        connection: Client,
        database: Database,
        folder: MirrorFolder,
        scope: MirrorScope,
        report: Callable[[MirrorCounts], None],
    ) -> None:
        self.counts = MirrorCounts()
        self._connection = connection
        self._database = database
        self._folder = folder
        self._scope = scope
        self._report = report
        self._applied = AppliedPosition()
        self._log = ""

    async def write_all(self) -> None:
        """Write the files of all users in the scope, and remove all other files of users.

        A folder with saved progress in this log stays unchanged: `follow_log` continues from its position.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the database or the broker does not answer.
            OSError: a file cannot be written.
        """
        self._log = await self._load_log_identity()
        end = await read_log_end(self._connection.jetstream())
        state = self._folder.load_state()
        if state is not None and state.log == self._log and state.position <= end:
            self.counts.position = state.position
            return
        await self._wait_for_rows(end)
        kept = set()
        async with aclosing(stream_owners(self._database, self._scope.tenant, self._scope.user)) as owners:
            async for owner in owners:
                await self._mirror_user(owner, end)
                kept.add(self._folder.get_path(owner))
                if len(kept) % _REPORTED_USERS == 0:
                    self._report(self.counts)
        for path in self._folder.list_files():
            if path not in kept:
                self.counts.removed += self._folder.remove_file(path)
        self._save_state(end)

    async def follow_log(self) -> None:
        """Write and remove files for new events in the log, until cancelled.

        Raises:
            DatabaseUnavailable: the database does not answer for `DATABASE_TIMEOUT` seconds.
            nats.errors.Error: the broker does not answer.
            OSError: a file cannot be written.
        """
        async with aclosing(
            stream_log_tail(self._connection, _choose_filter(self._scope), self.counts.position)
        ) as pages:
            async for page in pages:
                changed = set(_find_changed_owners(each.subject for each in page))
                if changed:
                    await self._wait_for_rows(page[-1].sequence)
                    for owner in sorted(changed):
                        await self._mirror_user(owner, page[-1].sequence)
                self._save_state(page[-1].sequence)
                if changed:
                    self._report(self.counts)

    async def _mirror_user(self, owner: Owner, position: int) -> None:
        """Write a user's file as of a log position; remove it if the user has no fact, field or task."""
        text = "".join(f"{line}\n" for line in await self._load_lines(owner, position))
        if text:
            self.counts.written += self._folder.write_file(owner, text)
        else:
            self.counts.removed += self._folder.remove_file(self._folder.get_path(owner))

    async def _load_lines(self, owner: Owner, position: int) -> list[str]:
        loop = asyncio.get_running_loop()
        end = loop.time() + DATABASE_TIMEOUT
        while True:
            try:
                async with (
                    open_memory(self._database, owner, position) as memory,
                    aclosing(generate_lines(memory, owner)) as written,
                ):
                    return [line async for line in written]
            except DatabaseUnavailable as error:
                if loop.time() > end:
                    raise
                log.warning("database read failed, retrying", error=str(error))
                await asyncio.sleep(_PAUSE)  # a database does not notify when it answers again

    async def _wait_for_rows(self, position: int) -> None:
        """Wait until the rows have all events up to a log position."""
        streams = self._connection.jetstream()
        while (reached := await self._applied.wait_for(streams, position, _PROJECTION_WAIT)) < position:
            log.warning("persist fell behind, waiting", position=position, persisted=reached)

    async def _load_log_identity(self) -> str:
        info = await self._connection.jetstream().stream_info(LOG)
        return str(info.created)

    def _save_state(self, position: int) -> None:
        self._folder.save_state(position, self._log)
        self.counts.position = position


def _choose_filter(scope: MirrorScope) -> str:
    if scope.tenant is None:
        return "memory.>"
    _, derived = (
        build_tenant_filters(scope.tenant)
        if scope.user is None
        else build_user_filters(scope.tenant, scope.user)
    )
    return derived


def _find_changed_owners(subjects: Iterable[str]) -> Iterable[Owner]:
    for subject in subjects:
        try:
            address = parse_subject(subject)
        except InvalidSubject:
            continue  # the event of a dead letter has no row
        if address.name in SHOWN_EVENTS:
            yield address.owner
