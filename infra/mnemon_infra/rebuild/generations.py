"""Generations of a rebuild: creating one, catching up with the log, and swapping it with the live one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Protocol

from nats.aio.client import Client
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.generations import generation_repository as generations
from mnemon_infra.database.generations.generation_repository import Generation
from mnemon_infra.database.generations.swap import Busy, switch, without_writers
from mnemon_infra.database.locks import locked_if_free
from mnemon_infra.database.migration import head_revision, migrate
from mnemon_infra.generation_names import GenerationKind, name_of
from mnemon_infra.rebuild.replay import Replay

NEAR: Final = 2000
"""Events that may be left when the writers have to wait: they wait for tenths of a second."""

PATIENCE: Final = 300.0
"""Seconds to wait for a moment without writers: work that asks a model locks tables that the swap moves."""


class RebuildProgress(Protocol):
    """Receiver of progress reports."""

    def at(self, reached: int, up_to: int) -> None:
        """Report progress: the position that is reached, and the last one."""

    def say(self, line: str) -> None:
        """Report a line for an operator."""


class InTheWay(Exception):
    """The operation is not possible now. `next_step` says what to do about it."""

    def __init__(self, problem: str, next_step: str) -> None:
        super().__init__(problem)
        self.next_step = next_step


class Site(NamedTuple):
    """Connections of a rebuild. `database` is the live generation."""

    deployment: Deployment
    connection: Client
    database: Database

    @property
    def live(self) -> str:
        return self.deployment.database_schema

    async def generations(self) -> list[Generation]:
        return await generations.generations(self.database, self.live)

    async def found(self, schema: str) -> Generation | None:
        """Return the generation of this name; None if there is none.

        Raises:
            InTheWay: the schema of this name is not of a rebuild.
            DatabaseUnavailable: the database cannot answer now.
        """
        found = next((each for each in await self.generations() if each.schema == schema), None)
        if found and not found.is_made_here:
            raise InTheWay(
                f"schema {schema} is not of a rebuild", "Look what it is, then rename or drop it with psql"
            )
        return found

    async def log_end(self) -> int:
        return await read_log_end(self.connection.jetstream())

    async def applied(self) -> int:
        """Return the applied position of the live generation."""
        return await read_applied_position(self.connection.jetstream())


@asynccontextmanager
async def site(deployment: Deployment) -> AsyncIterator[Site]:
    """Connect to the servers of a deployment, for reading.

    Raises:
        BrokerUnreachable, DatabaseUnavailable: one of them does not answer.
    """
    connection = await connect(str(deployment.nats_url), name="mnemon-rebuild")
    database = Database(deployment, name="mnemon-rebuild")
    try:
        await database.open()
        yield Site(deployment, connection, database)
    finally:
        await database.close()
        await connection.close()


@asynccontextmanager
async def site_alone(deployment: Deployment) -> AsyncIterator[Site]:
    """Connect to the servers of a deployment, and lock out other rebuilds.

    Raises:
        BrokerUnreachable, DatabaseUnavailable: one of them does not answer.
        InTheWay: another rebuild runs on this database.
    """
    async with (
        site(deployment) as place,
        locked_if_free(place.database, "rebuild", place.live) as is_mine,
    ):
        if not is_mine:
            raise InTheWay("another rebuild runs on this database", "Wait for its end, or end it")
        yield place


@asynccontextmanager
async def made(
    place: Site, kind: GenerationKind, progress: RebuildProgress, up_to: int | None = None
) -> AsyncIterator[Replay]:
    """Open a generation to fill: a new one, or one that an earlier attempt has left.

    A generation of another version or of another log is dropped and begun again.

    Args:
        place: connections of the rebuild.
        kind: kind of the generation, which gives its name.
        progress: receives progress reports.
        up_to: log position of a snapshot; None for the other kinds.

    Raises:
        InTheWay: a schema of its name is not of a rebuild.
        NameTooLong: the name of the live generation leaves no room for a suffix.
        DatabaseUnavailable: the database cannot do it now.
    """
    schema = name_of(place.live, kind, up_to)
    left = await place.found(schema)
    if left and (left.revision != head_revision() or (left.reached or 0) > await place.log_end()):
        progress.say(f"{schema} was begun by another version, or from another log: it is made from the start")
        await generations.drop(place.database, schema)
        left = None
    if left:
        progress.say(f"{schema} was begun before: going on from position {left.reached:,}")
    else:
        assert place.deployment.database_url, "it is open"
        await generations.begin(place.database, schema, up_to)
        await asyncio.to_thread(migrate, place.deployment.database_url, schema)
    async with _opened(place, schema) as database:
        yield Replay(place.connection, database, schema, left.reached or 0 if left else 0)


@asynccontextmanager
async def former(place: Site) -> AsyncIterator[Replay]:
    """Open the generation that was live before the last swap.

    Raises:
        InTheWay: there is none, or it has another schema revision.
        DatabaseUnavailable: the database cannot answer now.
    """
    schema = name_of(place.live, "former")
    found = await place.found(schema)
    if found is None or found.reached is None:
        raise InTheWay("there is no former generation", "See what there is: mnemon rebuild --list")
    if found.revision != head_revision():
        raise InTheWay(
            f"{schema} is at revision {found.revision}, and this version needs {head_revision()}",
            "Make a new one: mnemon rebuild --drop before && mnemon rebuild",
        )
    async with _opened(place, schema) as database:
        yield Replay(place.connection, database, schema, found.reached)


@asynccontextmanager
async def _opened(place: Site, schema: str) -> AsyncIterator[Database]:
    database = Database(
        place.deployment.model_copy(update={"database_schema": schema}), name="mnemon-rebuild"
    )
    try:
        await database.open()
        yield database
    finally:
        await database.close()


async def catch_up(place: Site, replay: Replay, progress: RebuildProgress) -> None:
    """Bring a generation to the end of the log, or nearly so if more events keep coming.

    Raises:
        nats.errors.Error, DatabaseUnavailable: one of the servers does not answer.
    """
    while True:
        end = await place.log_end()
        near = end - replay.reached <= NEAR
        await replay.reach(end, lambda reached, end=end: progress.at(reached, end))  # type: ignore[misc]
        if near:
            return


async def _nothing_else(connection: Connection, former: str) -> None:
    """Do nothing: a swap of rows has no further change."""


async def take_over(
    place: Site,
    replay: Replay,
    progress: RebuildProgress,
    also: Callable[[Connection, str], Awaitable[None]] = _nothing_else,
) -> None:
    """Swap the live generation for another, in one transaction. No event is lost, and readers proceed.

    Writers wait from the moment at which all that they wrote can be replayed to the moment at which the name
    leads to the new tables.

    Args:
        place: connections of the rebuild.
        replay: the new generation.
        progress: receives progress reports.
        also: runs in the same transaction, with the name of the former generation.

    Raises:
        nats.errors.Error, DatabaseUnavailable: nothing has changed.
    """
    await catch_up(place, replay, progress)
    await generations.analyze(replay.database)
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(Busy),
        stop=stop_after_delay(PATIENCE),
        wait=wait_fixed(0.5),
        before_sleep=lambda state: progress.say("somebody holds what is to be moved, trying again"),
        reraise=True,
    ):
        with attempt:
            await catch_up(place, replay, progress)
            async with without_writers(place.database, place.live) as held:
                await replay.reach(await place.log_end())
                await switch(held, place.live, replay.schema, await place.applied())
                await also(held, name_of(place.live, "former"))
