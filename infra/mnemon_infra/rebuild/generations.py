"""Generations of a rebuild: creation, catching up with the log, and swap with the live generation."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, Protocol

from nats.aio.client import Client
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from mnemon_contracts.subjects import parse_owner
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_log_end
from mnemon_infra.broker.streams.triggers import list_trigger_subjects
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.generations import generation_repository as generations
from mnemon_infra.database.generations.generation_repository import Generation
from mnemon_infra.database.generations.swap import TablesBusy, lock_out_writers, swap_schemas
from mnemon_infra.database.locks import try_lock
from mnemon_infra.database.migration import find_head_revision, migrate_schema
from mnemon_infra.generation_names import GenerationKind, name_generation
from mnemon_infra.rebuild.replay import Replay

SWAP_DISTANCE: Final = 2000
"""Maximum number of log positions left to replay when writers are locked out.

Their replay takes tenths of a second.
"""

SWAP_WAIT: Final = 300.0
"""Maximum seconds to wait for the locks of tables: work that waits for a model holds some of them."""


class RebuildProgress(Protocol):
    """Receiver of the progress reports of a rebuild, for example to show them in a terminal."""

    def report_rows(self, reached: int, up_to: int) -> None:
        """Report the log position that the rows have reached, and the position at which the replay ends."""

    def show_line(self, line: str) -> None:
        """Show a line of text to an operator."""


class RebuildBlocked(Exception):
    """A rebuild, or another operation on generations, is not possible now; the error has the next step."""

    def __init__(self, problem: str, next_step: str) -> None:
        """Create an error.

        Args:
            problem: the reason.
            next_step: an instruction for an operator, with `{data}` after each command, for the option that
                names the folder of the stack.
        """
        super().__init__(problem)
        self._next_step = next_step

    def describe_next_step(self, data_option: str) -> str:
        """Return the next step; `data_option` is " --data DIR", or "" for servers of the environment."""
        return self._next_step.replace("{data}", data_option)


class NoSuchGeneration(RebuildBlocked):
    """No generation has the given name."""


class Site(NamedTuple):
    """Connections of a rebuild; `database` reads and writes the live generation."""

    deployment: Deployment
    connection: Client
    database: Database

    @property
    def live(self) -> str:
        return self.deployment.database_schema

    async def list_generations(self) -> list[Generation]:
        return await self.database.run_query(generations.list_generations(self.live))

    async def find_generation(self, schema: str) -> Generation | None:
        """Return the generation of this name; None if no generation has it.

        Raises:
            RebuildBlocked: the schema of this name was not created by a rebuild.
            DatabaseUnavailable: the database cannot answer now.
        """
        found = next((each for each in await self.list_generations() if each.schema == schema), None)
        if found and not found.is_made_here:
            raise RebuildBlocked(
                f"schema {schema} was not created by a rebuild",
                "Check the content of the schema, then rename or drop the schema with psql",
            )
        return found

    async def load_log_end(self) -> int:
        return await read_log_end(self.connection.jetstream())

    async def load_applied_position(self) -> int:
        """Return the applied position of the live generation."""
        return await read_applied_position(self.connection.jetstream())


@asynccontextmanager
async def open_site(deployment: Deployment) -> AsyncIterator[Site]:
    """Connect to the servers of a deployment, without a lock against other rebuilds.

    Raises:
        BrokerUnreachable, DatabaseUnavailable: one of the servers does not answer.
        DatabaseNotConfigured: no address of a database is configured.
    """
    async with (
        await connect_deployment(deployment, name="mnemon-rebuild") as connection,
        Database(deployment, name="mnemon-rebuild") as database,
    ):
        yield Site(deployment, connection, database)


@asynccontextmanager
async def open_exclusive_site(deployment: Deployment) -> AsyncIterator[Site]:
    """Connect to the servers of a deployment, and lock out other rebuilds.

    Raises:
        BrokerUnreachable, DatabaseUnavailable: one of the servers does not answer.
        DatabaseNotConfigured: no address of a database is configured.
        RebuildBlocked: another rebuild of the same schema is running.
    """
    async with (
        open_site(deployment) as site,
        try_lock(site.database, "rebuild", site.live) as is_mine,
    ):
        if not is_mine:
            raise RebuildBlocked(
                f"another rebuild of the schema {site.live} is running",
                "Wait until that rebuild ends, or stop its process",
            )
        yield site


@asynccontextmanager
async def open_row_generation(
    site: Site, kind: GenerationKind, progress: RebuildProgress, up_to: int | None = None
) -> AsyncIterator[Replay]:
    """Open a generation to fill: a new generation, or one that an earlier attempt has left.

    A generation of another version or of another log is dropped and begun again.

    `up_to` is the log position of a generation of the kind `as of`; None for the other kinds.

    Raises:
        RebuildBlocked: the schema with the generation's name was not created by a rebuild.
        NameTooLong: the name of the live generation leaves no room for a suffix.
        nats.errors.Error, DatabaseUnavailable: one of the servers does not answer.
    """
    schema = name_generation(site.live, kind, up_to)
    left = await site.find_generation(schema)
    if left and (left.revision != find_head_revision() or (left.reached or 0) > await site.load_log_end()):
        await generations.drop_schema(site.database, schema)
        progress.show_line(
            f"dropped {schema}, begun by another version or from another log; replaying from the start"
        )
        left = None
    if left:
        progress.show_line(f"continuing the rebuild of {schema} from position {left.reached:,}")
    else:
        assert site.deployment.database_url, "it is open"
        await generations.create_generation(site.database, schema, up_to)
        await asyncio.to_thread(migrate_schema, site.deployment.database_url, schema)
    async with _make_generation_database(site, schema) as database:
        yield Replay(site.connection, database, schema, left.reached or 0 if left else 0)


@asynccontextmanager
async def open_former_rows(site: Site) -> AsyncIterator[Replay]:
    """Open the generation that was live before the last swap.

    Raises:
        RebuildBlocked: the database has no former generation, the schema of the former generation is not at
            the revision that this version needs, or that schema was not created by a rebuild.
        NameTooLong: the name of the live generation leaves no room for a suffix.
        DatabaseUnavailable: the database cannot answer now.
    """
    schema = name_generation(site.live, "former")
    found = await site.find_generation(schema)
    if found is None or found.reached is None:
        raise RebuildBlocked(
            "the database has no former generation", "List the generations: mnemon rebuild --list{data}"
        )
    if found.revision != find_head_revision():
        raise RebuildBlocked(
            f"schema {schema} is at revision {found.revision}, and this version of mnemon needs revision "
            f"{find_head_revision()}",
            "Replace the generation: mnemon rebuild --drop before{data} && mnemon rebuild{data}",
        )
    async with _make_generation_database(site, schema) as database:
        yield Replay(site.connection, database, schema, found.reached)


def _make_generation_database(site: Site, schema: str) -> Database:
    generation = site.deployment.model_copy(update={"database_schema": schema})
    return Database(generation, name="mnemon-rebuild")


async def catch_up_with_log(site: Site, replay: Replay, progress: RebuildProgress) -> None:
    """Replay the log into a generation, in rounds, until a round has at most `SWAP_DISTANCE` positions.

    Raises:
        nats.errors.Error, DatabaseUnavailable: one of the servers does not answer.
    """
    while True:
        end = await site.load_log_end()
        near = end - replay.reached <= SWAP_DISTANCE
        await replay.replay_until(end, lambda reached, end=end: progress.report_rows(reached, end))  # type: ignore[misc]
        if near:
            return


async def _change_nothing(connection: Connection, former: str) -> None:
    """Do nothing: the default of `also` in `swap_row_generations`."""


async def swap_row_generations(
    site: Site,
    replay: Replay,
    progress: RebuildProgress,
    also: Callable[[Connection, str], Awaitable[None]] = _change_nothing,
) -> None:
    """Swap the live generation for another, in one transaction. No event is lost, and readers proceed.

    Writers are locked out while the last events are replayed and the schemas are renamed.

    `also` runs in the same transaction, with the name of the former generation.

    Raises:
        nats.errors.Error, DatabaseUnavailable: the live generation is unchanged, unless the connection to the
            database was lost during the commit.
    """
    await catch_up_with_log(site, replay, progress)
    await generations.analyze_tables(replay.database)
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(TablesBusy),
        stop=stop_after_delay(SWAP_WAIT),
        wait=wait_fixed(0.5),
        before_sleep=lambda state: progress.show_line(
            "swap failed, because other transactions hold the tables; retrying"
        ),
        reraise=True,
    ):
        with attempt:
            await catch_up_with_log(site, replay, progress)
            async with lock_out_writers(site.database, site.live) as held:
                await replay.replay_until(await site.load_log_end())
                # In this order: `persist` publishes a trigger before its position passes the event.
                applied = await site.load_applied_position()
                unswept = {
                    parse_owner(each)
                    for each in await list_trigger_subjects(site.connection, "work.persist.>")
                }
                await swap_schemas(held, site.live, replay.schema, applied, unswept)
                await also(held, name_generation(site.live, "former"))
