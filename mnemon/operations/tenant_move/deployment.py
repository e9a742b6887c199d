"""The two deployments of a move, and the leases that exclude other commands."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import nats.errors
from nats.aio.client import Client
from nats.js.errors import KeyWrongLastSequenceError, NotFoundError

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_log_end
from mnemon_infra.broker.streams.stream_reader import StreamMessage, read_stream
from mnemon_infra.database.engine import Database
from mnemon_infra.database.lease import LeaseHeld, hold_lease
from mnemon_infra.settings.residence import Residence, read_residence, write_residence

_LOGIN: Final = re.compile(r"\A([a-z]+://)?.*@", re.IGNORECASE)

POLL_SECONDS = 0.05
"""Seconds between two checks of a condition at a server."""

SETTLE_SECONDS = 0.25
"""Seconds to wait after a change of the residence, until all processes have noticed it."""


class MoveRefused(Exception):
    """A move, a revert, a confirmation or an abandonment is refused; the message has the next step."""


class MoveDiffers(Exception):
    """The copy of a tenant differs from the original; the message names the first difference."""


@dataclass(slots=True)
class TenantSite:
    """A tenant in one deployment.

    Attributes:
        connection: connection of an operator.
        residence: the residence that this process has last read or written; None if the tenant has none, or
            before the first read.
    """

    connection: Client
    database: Database
    tenant: str
    residence: Residence | None = None
    _revision: int = 0

    async def load_residence(self) -> Residence | None:
        """Read and return the residence of the tenant; None if it has none.

        Raises:
            SettingsNotProvisioned: the bucket of settings is absent.
            ResidenceInvalid: the stored residence is invalid, or of a newer version.
            nats.errors.Error: the server does not answer.
        """
        self.residence, self._revision = await read_residence(self.connection, self.tenant)
        return self.residence

    async def write_residence(self, residence: Residence | None) -> None:
        """Write the residence of the tenant; None removes it.

        Raises:
            nats.js.errors.KeyWrongLastSequenceError: another process has changed the residence.
        """
        self._revision = await write_residence(self.connection, self.tenant, residence, self._revision)
        self.residence = residence

    async def read_end(self) -> int:
        """Return the last position of the log."""
        return (await self.connection.jetstream().stream_info(LOG)).state.last_seq

    async def has_reader(self) -> bool:
        """Return whether a process seems to run `persist`, by its open requests or unacknowledged events."""
        try:
            info = await self.connection.jetstream().consumer_info(LOG, "persist")
        except NotFoundError:
            return False
        return bool(info.num_waiting or info.num_ack_pending)

    async def has_applied(self, position: int) -> bool:
        """Return whether `persist` has written the rows of all events up to a position.

        Also return False if the server does not answer in time.
        """
        with suppress(nats.errors.TimeoutError):
            applied = await read_applied_position(self.connection.jetstream())
            if applied >= position:
                return True
            info = await self.connection.jetstream().consumer_info(LOG, "persist")
            return not (info.num_pending or info.num_ack_pending)
        return False


@asynccontextmanager
async def hold_move_leases(*sites: TenantSite | None) -> AsyncIterator[None]:
    """Keep all other commands from moving the tenant, from or to any of the deployments, during the block.

    Raises:
        MoveRefused: another command moves the tenant, and the message names its process if it is known; or
            another process has changed the residence during the block.
        LeaseLost: the lease was lost during the block, so that another command may move the tenant now.
        DatabaseUnavailable: a database does not answer.
    """
    async with AsyncExitStack() as leases:
        for site in filter(None, sites):
            try:
                await leases.enter_async_context(hold_lease(site.database, "tenant move", site.tenant))
            except LeaseHeld as held:
                raise MoveRefused(
                    f"another command moves the tenant {site.tenant} ({held.holder or 'process unknown'}"
                    f"{held.describe_since()}): wait until that command ends, or stop it"
                ) from held
        try:
            yield
        except KeyWrongLastSequenceError as error:
            tenant = next(site.tenant for site in sites if site)
            raise MoveRefused(
                f"another process has changed the state of the move of the tenant {tenant}: run the same"
                " command again"
            ) from error


def describe_arrival(tenant: str, residence: Residence) -> str:
    """Return the error of a command that ran in the target of a move; it names the source."""
    if residence.is_abandoned:
        return (
            f"this deployment has only the copy of an abandoned move: the tenant {tenant} is at"
            f" {residence.peer}; run the command for that deployment (--data or MNEMON_NATS_URL)"
        )
    return (
        f"the tenant {tenant} is moving here from {residence.peer}: run the command for that deployment"
        " (--data or MNEMON_NATS_URL), with this one as --to"
    )


def strip_login(url: str) -> str:
    """Return addresses of servers, comma-separated, without user and password.

    An address may have no scheme, as for nats-py.
    """
    servers = filter(None, (server.strip() for server in url.split(",")))
    return ",".join(_LOGIN.sub(r"\1", each) for each in servers)


async def stream_log(
    connection: Client, subject: str, *, after: int = 0, up_to: int | None = None, headers_only: bool = False
) -> AsyncGenerator[StreamMessage, None]:
    """Yield the events of a log with a subject that matches, in log order.

    Args:
        connection: connection to the server.
        subject: pattern of the subjects.
        after: the position before the first one to read.
        up_to: the last position to read; None for the end of the log as of now.
        headers_only: True to leave out the bodies.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    if up_to is None:
        up_to = await read_log_end(connection.jetstream())
    pages = read_stream(connection, LOG, after=after, up_to=up_to, subject=subject, headers_only=headers_only)
    async with aclosing(pages):
        async for page in pages:
            for each in page:
                yield each
