"""An export as a whole: of whom, as of which log position, and how far it has come."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from nats.aio.client import Client

from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.applied_position import Position, log_end
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory.export import WholeMemory, owners, whole_memory

PATIENCE: Final = 30.0
"""Seconds for which the rows are waited for, to have what the log has."""


class ExportFormat(Protocol):
    """How the memory of one user is written."""

    def __call__(self, memory: WholeMemory, owner: Owner) -> AsyncGenerator[str, None]: ...


class NotProjected(Exception):
    """The rows are too far behind the log to be taken for what is known."""


@dataclass(slots=True)
class ExportCounts:
    """How much is written.

    Attributes:
        position: the log position as of which it is.
        users: how many have a memory.
        lines: of all of them.
    """

    position: int
    users: int = 0
    lines: int = 0


async def settled(connection: Client) -> int:
    """The log position that an export is as of: all that the log has now is in the rows.

    Raises:
        NotProjected: it is not, and does not come.
        nats.errors.Error: the server does not answer.
    """
    end = await log_end(connection.jetstream())
    position = Position()
    if await position.reach(connection.jetstream(), end, PATIENCE) < end:
        raise NotProjected(f"{end - position.value:,} events of the log are not in the database yet")
    return end


async def everybody(database: Database, tenant: str | None) -> AsyncIterator[Owner]:
    """All users, or those of a tenant, in order.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    after: Owner | None = None
    while page := await database.read(owners(after, tenant)):
        for owner in page:
            yield owner
        after = page[-1]


async def write(
    database: Database,
    whose: AsyncIterator[Owner],
    form: ExportFormat,
    put: Callable[[str], None],
    written: ExportCounts,
    progress: Callable[[ExportCounts], None],
) -> ExportCounts:
    """Write the memory of users, one after another; of who was erased meanwhile there is nothing more.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    async for owner in whose:
        before = written.lines
        async with (
            whole_memory(database, owner, written.position) as memory,
            aclosing(form(memory, owner)) as lines,
        ):
            async for line in lines:
                put(line)
                written.lines += 1
                if written.lines % 1000 == 0:
                    progress(written)
        written.users += written.lines > before
        progress(written)
    return written
