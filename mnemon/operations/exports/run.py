"""Export of many users' memory as of one log position, with its progress."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from nats.aio.client import Client

from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_log_end
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory.export import ExportedMemory, list_owners, open_memory

PROJECTION_TIMEOUT: Final = 30.0
"""Maximum seconds that an export waits until the rows have all events of the log."""


class ExportFormat(Protocol):
    """Function that yields the lines of an export for the memory of one user."""

    def __call__(self, memory: ExportedMemory, owner: Owner) -> AsyncGenerator[str, None]: ...


class NotProjected(Exception):
    """The rows, or the decisions of `dedupe`, are too far behind the log for an export."""


@dataclass(slots=True)
class ExportCounts:
    """Progress of an export.

    Attributes:
        position: log position up to which events are exported.
        users: users with at least one line so far.
        lines: lines written so far.
    """

    position: int
    users: int = 0
    lines: int = 0


async def wait_until_projected(connection: Client) -> int:
    """Wait until the rows have all events of the log as of now; return the last log position.

    Raises:
        NotProjected: the rows do not have these events within `PROJECTION_TIMEOUT` seconds.
        nats.errors.Error: the server does not answer.
    """
    end = await read_log_end(connection.jetstream())
    position = AppliedPosition()
    if await position.wait_for(connection.jetstream(), end, PROJECTION_TIMEOUT) < end:
        raise NotProjected(
            f"the rows are still {end - position.value:,} positions behind the log after"
            f" {PROJECTION_TIMEOUT:.0f} s; wait until `persist` has caught up"
        )
    return end


async def stream_owners(
    database: Database, tenant: str | None, user: str | None = None
) -> AsyncGenerator[Owner, None]:
    """Yield the users with stored memory, sorted by tenant and user, or the one user that is named.

    `tenant` None stands for all tenants, `user` None for all users.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    if tenant is not None and user is not None:
        yield tenant, user
        return
    after: Owner | None = None
    while page := await database.run_query(list_owners(after, tenant)):
        for owner in page:
            yield owner
        after = page[-1]


async def write_memories(
    database: Database,
    scope: tuple[str | None, str | None],
    generate: ExportFormat,
    write_line: Callable[[str], None],
    counts: ExportCounts,
    progress: Callable[[ExportCounts], None],
) -> None:
    """Write the memory of users, one after another.

    A user who is erased before their memory is read has no lines.

    Args:
        database: the database with the rows.
        scope: tenant and user, as for `stream_owners`.
        generate: yields the lines of one user.
        write_line: receives each line, without a newline.
        counts: has the log position to export; updated in place.
        progress: called with `counts` after each user, and after every 1,000 lines.

    Raises:
        DatabaseUnavailable: the database cannot answer now; the export is incomplete.
    """
    async for owner in stream_owners(database, *scope):
        before = counts.lines
        async with (
            open_memory(database, owner, counts.position) as memory,
            aclosing(generate(memory, owner)) as lines,
        ):
            async for line in lines:
                write_line(line)
                counts.lines += 1
                if counts.lines % 1000 == 0:
                    progress(counts)
        counts.users += counts.lines > before
        progress(counts)
