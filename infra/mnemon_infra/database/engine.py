"""Connection pool, compiled statements, and translation of driver errors."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cached_property, wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

import msgspec
import psycopg
from psycopg.sql import SQL, Identifier, Literal
from psycopg.types.json import Json
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from sqlalchemy import ARRAY, URL, BigInteger, BindParameter, Boolean, DateTime, Select, Text, bindparam
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql.elements import ClauseElement

from mnemon_infra.config import Deployment
from mnemon_infra.durables import STATEMENT_TIMEOUT
from mnemon_infra.process.cancellation import suppress_task_error

CONNECTION_WAIT = 2.0
"""Seconds to wait for a connection of the pool.

The wait is short, so that a bot gets the error while it still waits for a reply.
"""

ANSWER_WAIT = 2.0
"""Seconds to wait for an answer of the database on behalf of a bot, which by default waits three seconds."""

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
QueryResult = TypeVar("QueryResult")
QueryArguments = ParamSpec("QueryArguments")
Query = Callable[[Connection], Awaitable[QueryResult]]
"""A coroutine function that reads from a connection."""

_KEEPALIVES: Mapping[str, Any] = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
"""Keepalive settings: a connection that only listens notices a lost server within 25 seconds."""

_DIALECT = PGDialect_psycopg()  # type: ignore[no-untyped-call]


class DatabaseUnavailable(Exception):
    """The database cannot answer now; a later attempt may succeed.

    Reasons are for example a missing connection, a deadlock, a time-out, a missing migration or a full disk.
    """


class _ConnectionLost(DatabaseUnavailable):
    """The connection was lost while a statement ran; another connection may still work."""


class DatabaseRefused(Exception):
    """The database refuses the values; every further attempt with these values fails too."""


class DatabaseNotConfigured(Exception):
    """Neither `DATABASE_URL` nor any `PG_*` variable is set."""


def is_storable(identifier: str) -> bool:
    """Return whether PostgreSQL can store this id.

    Points that earlier versions wrote may have ids with a NUL character, which PostgreSQL cannot store.
    """
    return "\0" not in identifier


def query(
    function: Callable[Concatenate[Connection, QueryArguments], Awaitable[QueryResult]],
) -> Callable[QueryArguments, Query[QueryResult]]:
    """Return a function that takes the arguments of `function` but the connection, and returns a `Query`.

    `Database.run_query` runs the query, and runs it again if the connection is lost. So no argument may be an
    iterator, which the first run would use up.
    """

    @wraps(function)
    def bind(*args: QueryArguments.args, **kwargs: QueryArguments.kwargs) -> Query[QueryResult]:
        return lambda connection: function(connection, *args, **kwargs)

    return bind


_TYPES: Mapping[Any, Any] = {
    int: BigInteger,
    str: Text,
    bool: Boolean,
    datetime: DateTime(timezone=True),
    list[int]: ARRAY(BigInteger),
    list[str]: ARRAY(Text),
}


def make_parameter(name: str, kind: type[QueryResult]) -> BindParameter[QueryResult]:
    """Return a bind parameter with the PostgreSQL type of one of the Python types in `_TYPES`.

    A `Lookup` needs the types of its parameters.
    """
    return bindparam(name, type_=_TYPES[kind])


async def await_answer(answer: Coroutine[Any, Any, QueryResult]) -> QueryResult:
    """Return the answer if it arrives within `ANSWER_WAIT` seconds.

    A query that takes longer continues in the background, and its result is dropped: the driver cannot stop a
    query without waiting for the database to confirm the stop.

    Raises:
        DatabaseUnavailable: the answer does not arrive in time.
    """
    asked = asyncio.ensure_future(answer)
    asked.add_done_callback(suppress_task_error)
    try:
        return await asyncio.wait_for(asyncio.shield(asked), ANSWER_WAIT)
    except TimeoutError as error:
        raise make_timeout_error() from error


def make_timeout_error() -> DatabaseUnavailable:
    """Return the error for an answer that does not arrive within `ANSWER_WAIT` seconds."""
    return DatabaseUnavailable(
        f"no answer within {ANSWER_WAIT:g} s from PostgreSQL. If this happens again, check the server and "
        "its load"
    )


class _Compiled(NamedTuple):
    sql: str
    constants: dict[str, Any]


class Statement:
    """A SQLAlchemy Core statement that psycopg runs directly, in half the time that SQLAlchemy takes.

    The statement is compiled once, on first use: a process runs only a few of the statements that it imports.
    """

    def __init__(self, clause: ClauseElement) -> None:
        self._clause = clause

    @cached_property
    def compiled(self) -> _Compiled:
        """The SQL for psycopg, with the constants of the statement by name."""
        compiled = self._clause.compile(dialect=_DIALECT)
        return _Compiled(str(compiled), dict(compiled.params))

    async def fetch_row(self, connection: Connection, parameters: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the only row of the result.

        Raises:
            LookupError: the result has no row, or more than one.
        """
        sql, constants = self.compiled
        cursor = await connection.execute(sql, {**constants, **parameters}, binary=True)
        rows = await cursor.fetchall()
        if len(rows) != 1:
            raise LookupError(f"{len(rows)} rows were returned instead of one; correct this statement: {sql}")
        return rows[0]

    async def fetch_value(self, connection: Connection, parameters: Mapping[str, Any]) -> Any:
        """Return the only value of the result.

        Raises:
            LookupError: the result has no row, or more than one.
        """
        (value,) = await self.fetch_row(connection, parameters)
        return value

    async def execute_each(self, connection: Connection, parameters: Sequence[Mapping[str, Any]]) -> int:
        """Run the statement once for each set of parameters and return the number of rows changed."""
        sql, constants = self.compiled
        async with connection.cursor() as cursor:
            await cursor.executemany(sql, [{**constants, **each} for each in parameters])
            return cursor.rowcount


class Lookup:
    """A query that runs for many sets of parameters in one round trip.

    The query is compiled once, on first use, as a `Statement` is. Starting a query takes PostgreSQL longer
    than finding a user's rows: in a batch of 64 users, each user takes a quarter of the time of a separate
    query.
    """

    def __init__(self, clause: Select[Any]) -> None:
        self._clause = clause

    @cached_property
    def compiled(self) -> str:
        """The SQL, which takes all sets of parameters as one JSON array in `$1`."""
        compiled = self._clause.compile(dialect=_DIALECT)
        types = {
            name: parameter.type.compile(_DIALECT)
            for parameter, name in compiled.bind_names.items()
            if parameter.required
        }

        def name_column(parameter: re.Match[str]) -> str:
            return f"w.{parameter[1]}" if parameter[1] in types else parameter[0]

        each = re.sub(r"%\((\w+)\)s(::\w+( WITH TIME ZONE)?(\[\])?)?", name_column, str(compiled))
        columns = "".join(f", {name} {type_}" for name, type_ in types.items())
        # psycopg converts each parameter for each run, so the statement contains the constants.
        literals = {
            f"%({name})s": Literal(value).as_string()
            for name, value in compiled.params.items()
            if name not in types
        }
        sql = f"""
            SELECT w.place, found.* FROM json_to_recordset($1) AS w (place integer{columns})
            CROSS JOIN LATERAL ({each}) AS found"""  # noqa: S608 - made of SQLAlchemy's own text
        return re.sub(r"%\(\w+\)s|%%", lambda found: literals.get(found[0], "%"), " ".join(sql.split()))

    async def fetch(self, connection: Connection, **parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a single set of parameters, in no particular order."""
        [rows] = await self.fetch_each(connection, [parameters])
        return rows

    async def fetch_each(
        self, connection: Connection, keys: Sequence[Mapping[str, Any]]
    ) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each set of parameters in `keys`, in the order of the sets.

        The rows of one set are in no particular order.
        """
        # One JSON parameter for all sets: psycopg takes ten times as long for arrays.
        sets = Json([{"place": place, **each} for place, each in enumerate(keys)], dumps=msgspec.json.encode)
        # A numbered parameter: psycopg parses a statement with names each time that it runs, if the statement
        # is longer than 4096 characters, which takes a third of a read.
        cursor = psycopg.AsyncRawCursor(connection)
        # In binary format, numbers and times need no parsing.
        await cursor.execute(self.compiled, [sets], binary=True)
        found: list[list[tuple[Any, ...]]] = [[] for _ in keys]
        for row in await cursor.fetchall():
            found[row[0]].append(row[1:])
        return found


class PoolState(NamedTuple):
    """State of a pool: numbers of all and of idle connections, and of requests that wait for a connection."""

    name: str
    connections: int
    idle: int
    waiting: int


_open_pools: WeakKeyDictionary[AsyncConnectionPool[Any], str] = WeakKeyDictionary()
"""Open pools of this process, each with the name that its connections have in the database."""


def list_pools() -> list[PoolState]:
    """Return the state of each open pool of this process."""
    names = ("pool_size", "pool_available", "requests_waiting")
    statistics = [(name, pool.get_stats()) for pool, name in _open_pools.items()]
    return [PoolState(name, *(each.get(key, 0) for key in names)) for name, each in statistics]


class Database:
    """A pool of connections to one generation of the projections (one schema).

    Attributes:
        lock_slots: limits locks to half of the pool's connections. The holder of a lock occupies one
            connection and needs a second one for its work; if locks took all of them, no holder could finish.

    Raises:
        DatabaseNotConfigured: the deployment names no database.
    """

    def __init__(self, deployment: Deployment, *, name: str = "mnemon") -> None:
        if deployment.database_url is None:
            raise DatabaseNotConfigured(
                "no database is configured: set DATABASE_URL, or at least one of PG_HOST, PG_PORT, PG_DB, "
                "PG_USER and PG_PASSWORD"
            )
        url = deployment.database_url.set(drivername="postgresql")
        settings = {
            "search_path": deployment.database_schema,
            # psycopg takes three times as long for the times of any other zone.
            "TimeZone": "UTC",
            "statement_timeout": f"{STATEMENT_TIMEOUT * 1000:.0f}",
            # The transaction of a lock is idle while its holder waits for a model, or replays the log.
            "idle_in_transaction_session_timeout": "0",
            # Replanning takes longer than the query itself, and no plan here depends on the values.
            "plan_cache_mode": "force_generic_plan",
            "jit": "off",
        }
        self.schema = deployment.database_schema
        self._address = url.render_as_string(hide_password=False)
        self._shown = redact_database_url(url)
        self._options: dict[str, Any] = {
            "autocommit": True,
            "connect_timeout": 5,
            "application_name": name,
            "client_encoding": "utf8",
            "options": " ".join(f"-c{name}={value}" for name, value in settings.items()),
        }
        connections = max(deployment.pg_pool_min, deployment.pg_pool_max, 2)
        self.lock_slots = asyncio.Semaphore(connections // 2)
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            self._address,
            min_size=deployment.pg_pool_min,
            max_size=connections,
            timeout=CONNECTION_WAIT,
            open=False,
            kwargs=self._options,
        )

    async def __aenter__(self) -> Self:
        """Open the pool, with the same errors as `open`."""
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Make the first connection, and open the pool.

        Raises:
            DatabaseUnavailable: no connection can be made, or the schema has not been migrated.
        """
        try:
            # Connect without the pool first: the pool would retry for ever and not report the reason.
            first = await psycopg.AsyncConnection.connect(self._address, **self._options)
        except (psycopg.Error, OSError) as error:
            raise make_connection_error(self._shown, error) from error
        try:
            async with first:
                await first.execute("SELECT FROM memory_events LIMIT 0")
        except (psycopg.Error, OSError) as error:
            raise translate_error(error) from error
        await self._pool.open()
        _open_pools[self._pool] = self._options["application_name"]

    async def close(self) -> None:
        """Close all connections of the pool."""
        _open_pools.pop(self._pool, None)
        await self._pool.close()

    @asynccontextmanager
    async def transaction(self, *, keep: bool = True) -> AsyncIterator[Connection]:
        """Open a transaction on a connection of the pool; by default, commit it at the end of the block.

        An exception in the block rolls the transaction back.

        If `keep` is False, the transaction is rolled back even if no exception occurs.

        Raises:
            DatabaseUnavailable: the database cannot answer now.
            DatabaseRefused: the database refuses the values; every further attempt fails too.
        """
        async with self._acquire_connection() as connection, connection.transaction(force_rollback=not keep):
            yield connection

    async def run_query(self, query: Query[QueryResult]) -> QueryResult:
        """Run a query and return its result.

        The query runs a second time if the connection is lost.

        Raises:
            DatabaseUnavailable: the database cannot answer now.
            DatabaseRefused: the database refuses the values; every further attempt fails too.
        """
        try:
            async with self._acquire_connection() as connection:
                return await query(connection)
        except _ConnectionLost:
            # A lost connection is usually one of many, as after a restart of the database. So
            # `_acquire_connection` has made the pool check the other connections.
            async with self._acquire_connection() as connection:
                return await query(connection)

    async def listen(self, channel: str) -> AsyncIterator[str | None]:
        """Listen to a channel of PostgreSQL on a connection outside the pool.

        Yields:
            None once the connection listens, then the payload of each notification.

        Raises:
            DatabaseUnavailable: no connection can be made, or the connection no longer listens; notifications
                may be missed from now on.
        """
        try:
            listener = await psycopg.AsyncConnection.connect(self._address, **self._options, **_KEEPALIVES)
            async with listener:
                await listener.execute(SQL("LISTEN {}").format(Identifier(channel)))
                yield None
                async for notice in listener.notifies():
                    yield notice.payload
        except (psycopg.Error, OSError) as error:
            raise translate_error(error) from error

    @asynccontextmanager
    async def _acquire_connection(self) -> AsyncIterator[Connection]:
        try:
            async with self._pool.connection() as connection:
                try:
                    yield connection
                except (psycopg.OperationalError, OSError) as error:
                    # An OSError may come from other work in the block while the connection itself is intact.
                    if not connection.closed:
                        raise
                    await self._pool.check()
                    raise _ConnectionLost(get_first_line(error)) from error
        except (psycopg.Error, PoolTimeout) as error:
            means = translate_error(error)
            raise means from (None if isinstance(means, DatabaseRefused) else error)


# https://www.postgresql.org/docs/current/errcodes-appendix.html: class 22 is a value that a type cannot
# hold, 23 a broken constraint, 54 a program limit (an index row too long, nesting too deep).
_VALUES = ("22", "23", "54")
_UNDEFINED_TABLE = "42P01"
_NEXT_STEP = {
    _UNDEFINED_TABLE: "run `mnemon migrate`",
    "25006": "name the primary server in DATABASE_URL, or let this one accept writes",
    "42501": "grant the right to the role, or name another role in DATABASE_URL",
    "53100": "make room on the disk of the database",
}


# The driver gives no code for a connection that the server refuses.
_NO_CONNECTION_LEFT = re.compile("too many clients|too many connections|remaining connection slots")


async def load_clock_time(connection: Connection) -> float:
    """Return the time of the database's clock, in seconds since 1970."""
    row = await (await connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8")).fetchone()
    assert row is not None
    return float(row[0])


def redact_database_url(url: URL) -> str:
    """Return the address of a database for messages, without passwords."""
    without_passwords = url.difference_update_query(["password", "sslpassword"])
    return without_passwords.set(drivername="postgresql").render_as_string(hide_password=True)


def make_connection_error(address: str, error: BaseException) -> DatabaseUnavailable:
    """Return the error for a failed connection, with the driver's reason, such as a wrong password."""
    lines = str(error).removeprefix("connection failed: ").splitlines()
    said = "; ".join(line.strip() for line in lines if line.strip())
    next_step = (
        "Raise the limit of connections at the server, or lower MNEMON_PG_POOL_MAX or the number of processes"
        if _NO_CONNECTION_LEFT.search(said)
        else "Check DATABASE_URL (or PG_HOST PG_PORT PG_DB PG_USER PG_PASSWORD), and that the server runs"
    )
    return DatabaseUnavailable(
        f"no connection to the database {address}: {said or type(error).__name__}. {next_step}"
    )


def get_first_line(error: BaseException) -> str:
    """Return the first line of a driver's error; empty if the error has no text."""
    return str(error).strip().partition("\n")[0]


def translate_error(error: Exception) -> Exception:
    """Translate an error of the driver for callers, with the next step for the errors in `_NEXT_STEP`.

    Returns:
        DatabaseRefused for values that cannot be stored; the error itself for a programming error that is not
        in `_NEXT_STEP`; else DatabaseUnavailable.
    """
    state = (error.sqlstate if isinstance(error, psycopg.Error) else None) or ""
    said = get_first_line(error)
    if state.startswith(_VALUES):
        # Messages of such errors quote the values, and messages are logged.
        return DatabaseRefused(re.sub('".*"', "…", said))
    if state in _NEXT_STEP:
        return DatabaseUnavailable(f"{said}: {_NEXT_STEP[state]}")
    if isinstance(error, psycopg.ProgrammingError):
        return error
    return DatabaseUnavailable(said or type(error).__name__)
