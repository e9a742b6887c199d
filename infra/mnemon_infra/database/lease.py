"""Lease on an operation: an advisory lock that names its holder and ends when the holder is lost.

The server ends the lease with the holder's connection: at once if the process dies, and after
`LEASE_SECONDS` if its machine no longer answers.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import psycopg

from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable, get_first_line
from mnemon_infra.database.locks import find_lock_holder, try_locks
from mnemon_infra.process.cancellation import run_task

LEASE_SECONDS: Final = 30.0
"""Seconds after which the server ends the lease of a holder that does not renew it."""

RENEWALS: Final = 6
"""Number of renewals in `LEASE_SECONDS`."""

_NAME_BYTES: Final = 63
"""Maximum bytes of a connection's name in PostgreSQL, which cuts off longer names."""

_SET_CONNECTION_NAME: Final = """
    SELECT set_config('application_name', %s, true),
        set_config('idle_in_transaction_session_timeout', %s, true)
"""


class LeaseHeld(Exception):
    """Another process holds the lease.

    Attributes:
        holder: the process and its machine; None if the database does not show them.
        since: the time since which the process holds the lease; None if the database does not show it.
    """

    def __init__(self, holder: str | None, since: datetime | None) -> None:
        self.holder, self.since = holder, since
        holds = "has held" if since else "holds"
        super().__init__(
            f"{holder or 'another process'} {holds} the lease{self.describe_since()}: wait until that "
            "process ends, or stop it"
        )

    def describe_since(self) -> str:
        """Return `since` as the end of a phrase, as in " since 2026-01-31 12:00:00 UTC"; "" for None."""
        return f" since {self.since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if self.since else ""


class LeaseLost(DatabaseUnavailable):
    """The database has ended the lease, so that another process may hold it now."""


@asynccontextmanager
async def hold_lease(database: Database, *name_parts: str) -> AsyncIterator[None]:
    """Hold a lease for the duration of the block. If the lease is lost, the block is cancelled.

    Args:
        database: the database that all contenders use.
        name_parts: the parts of the lease's name, such as an operation and a tenant. Leases in different
            schemas of one database do not exclude each other.

    Raises:
        LeaseHeld: another process holds the lease.
        LeaseLost: the lease was lost during the block.
        DatabaseUnavailable: the database does not answer.
    """
    name = database.schema, *name_parts
    async with database.lock_slots, database.transaction() as connection:
        await connection.execute(_SET_CONNECTION_NAME, (_describe_process(), f"{LEASE_SECONDS * 1000:.0f}"))
        (is_mine,) = await try_locks(connection, [name])
        if not is_mine:
            raise LeaseHeld(*await find_lock_holder(connection, name))
        async with _keep_lease(connection, " ".join(name_parts)):
            yield


@asynccontextmanager
async def _keep_lease(connection: Connection, name: str) -> AsyncIterator[None]:
    fault: list[Exception] = []
    try:
        async with asyncio.timeout(None) as limit, run_task(_renew_lease(connection, limit, fault)):
            yield
    except TimeoutError as error:
        if not fault:
            raise
        reason = get_first_line(fault[0])
        raise LeaseLost(
            f"this process has lost its lease on {name}, because its connection to the database ended"
            f" ({reason}): run the command again"
        ) from error


async def _renew_lease(connection: Connection, limit: asyncio.Timeout, fault: list[Exception]) -> None:
    while True:
        await asyncio.sleep(LEASE_SECONDS / RENEWALS)
        try:
            await connection.execute("SELECT")
        except (psycopg.Error, OSError) as error:
            fault.append(error)
            limit.reschedule(0)
            return


def _describe_process() -> str:
    """Return the id of this process and the name of its machine, as far as PostgreSQL stores them."""
    name = f"process {os.getpid()} on {socket.gethostname()}"
    return name.encode(errors="replace")[:_NAME_BYTES].decode(errors="ignore")
