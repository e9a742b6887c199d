"""Rows that the erasure of a user or of a conversation covers: counts, deletion, and batches of windows.

Consumers write to the live generation only. In all other generations, functions of this module apply the
erasures.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from psycopg.sql import SQL, Identifier
from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    and_,
    delete,
    func,
    literal_column,
    or_,
    select,
    text,
    tuple_,
    update,
)

from mnemon_infra.broker.erasure.scope import ErasedUser, ErasureScope, escape_as_json
from mnemon_infra.database.engine import Connection, Database, Statement, make_parameter, query
from mnemon_infra.database.erasure.conversation_predicates import (
    CONVERSATION_TABLES,
    bind_erasure,
    is_covered_by_parameters,
)
from mnemon_infra.database.erasure.users import BELOW, PROJECTED_TABLES, is_below
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.tables import IS_OPEN, batches, conversation_erasures, erasures, windows
from mnemon_infra.generation_names import OTHERS


def _count_rows(table: Table, *conditions: ColumnElement[bool]) -> Statement:
    return Statement(select(func.count()).select_from(table).where(*conditions))


def _contains_words(table: Table) -> ColumnElement[bool]:
    """Return the condition that a row contains the text of the parameter `words`, ignoring letter case.

    PostgreSQL escapes quotes and backslashes in the text form of a row. So a text that JSON escapes is also
    looked for in the JSON form of the row, as `escaped_once` and `escaped_twice`. Any other text is not,
    because the JSON form also contains the names of the columns.
    """
    words, escaped = (
        make_parameter("words", str),
        [make_parameter(f"escaped_{each}", str) for each in ("once", "twice")],
    )
    row = func.lower(literal_column(f"{table.name}::text"))
    as_json = func.lower(literal_column(f"row_to_json({table.name})::text"))
    return or_(
        func.strpos(row, func.lower(words)) > 0,
        *(and_(each != words, func.strpos(as_json, func.lower(each)) > 0) for each in escaped),
    )


def _select_providers(is_covered: ColumnElement[bool]) -> Select[Any]:
    ids = func.coalesce(batches.c.provider_batch_id, batches.c.batch_id)
    held = (
        select(ids.label("id"))
        .join(windows, windows.c.batch_id == batches.c.batch_id)
        .where(is_covered, text(IS_OPEN), ~windows.c.is_answered)
        .distinct()
        .subquery("held")
    )
    return select(func.coalesce(func.array_agg(held.c.id), text("ARRAY[]::text[]")))


class _ErasureStatements:
    """Statements for erasures of one kind: of users or of conversations.

    Attributes:
        deletions: statements that delete the covered rows, by table; none for windows.
        counts: statements that count the covered rows, by table, windows included.
        release: statement that deletes the covered windows that are not locked. A process locks a window
            while it asks a model online.
        providers: statement that selects the ids of open batches with covered windows that are not answered.
        settle: statement that marks the erasure as settled.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        is_covered: Callable[[Table], ColumnElement[bool]],
        settle: Statement,
    ) -> None:
        self.deletions = {table.name: Statement(delete(table).where(is_covered(table))) for table in tables}
        self.counts = {table.name: _count_rows(table, is_covered(table)) for table in (*tables, windows)}
        key = tuple(windows.primary_key)
        free = select(*key).where(is_covered(windows)).with_for_update(skip_locked=True)
        self.release = Statement(delete(windows).where(tuple_(*key).in_(free)))
        self.providers = Statement(_select_providers(is_covered(windows)))
        self.settle = settle


def _set_settled(table: Table, condition: ColumnElement[bool]) -> Statement:
    return Statement(update(table).where(is_owned(table), condition).values(is_settled=True))


_OF_USERS: Final = _ErasureStatements(
    PROJECTED_TABLES,
    lambda table: and_(is_owned(table), is_below(table, BELOW)),
    _set_settled(erasures, erasures.c.seq == BELOW),
)
_OF_CONVERSATIONS: Final = _ErasureStatements(
    CONVERSATION_TABLES,
    is_covered_by_parameters,
    _set_settled(conversation_erasures, conversation_erasures.c.event_id == make_parameter("erasure", str)),
)
_SEARCHES: Final = {
    table.name: _count_rows(table, is_owned(table), _contains_words(table)) for table in PROJECTED_TABLES
}


def _choose_statements(erased: ErasureScope) -> tuple[_ErasureStatements, dict[str, Any]]:
    """Return the statements for the kind of an erasure, and their parameters."""
    if isinstance(erased, ErasedUser):
        return _OF_USERS, bind_owner(*erased.owner) | {"below": erased.below}
    return _OF_CONVERSATIONS, bind_erasure(erased)


@query
async def count_covered_rows(connection: Connection, erased: ErasureScope) -> dict[str, int]:
    """Count the rows that an erasure covers, by table; tables without such rows are left out."""
    statements, parameters = _choose_statements(erased)
    counts = {
        name: await count.fetch_value(connection, parameters) for name, count in statements.counts.items()
    }
    return {name: count for name, count in counts.items() if count}


@query
async def list_provider_batches(connection: Connection, erased: ErasureScope) -> list[str]:
    """Return the ids of open batches with unanswered windows that an erasure covers.

    The ids are those of the providers, or mnemon's own for batches that the provider has not named yet.
    """
    statements, parameters = _choose_statements(erased)
    return sorted(await statements.providers.fetch_value(connection, parameters))


async def release_windows(database: Database, erased: ErasureScope) -> None:
    """Delete the windows that an erasure covers, except those that another transaction has locked.

    A process locks a window while it asks a model online.
    """
    statements, parameters = _choose_statements(erased)
    async with database.transaction() as connection:
        await statements.release.execute_each(connection, [parameters])


async def mark_settled(database: Database, erased: ErasureScope) -> None:
    """Record that log, dead letters and triggers are purged for an erasure.

    A later erasure stays unsettled.
    """
    statements, parameters = _choose_statements(erased)
    async with database.transaction() as connection:
        await statements.settle.execute_each(connection, [parameters])


@query
async def count_rows_with(connection: Connection, tenant: str, user: str, words: str) -> int:
    """Count the rows of a user that contain the text `words`, ignoring letter case."""
    parameters = _bind_search(tenant, user, words)
    return sum([await search.fetch_value(connection, parameters) for search in _SEARCHES.values()])


async def erase_in_inactive_generations(database: Database, erased: ErasureScope) -> None:
    """Delete the rows that an erasure covers in all generations that are not live.

    Raises:
        DatabaseUnavailable: some rows may be left; the call can be repeated.
    """
    statements, parameters = _choose_statements(erased)
    async with database.transaction() as connection, _open_schemas(connection) as schemas:
        for schema in schemas:
            for deletion in await _choose_existing(connection, schema, statements.deletions):
                await deletion.execute_each(connection, [parameters])


@query
async def count_in_inactive_generations(connection: Connection, erased: ErasureScope) -> dict[str, int]:
    """Count the rows that an erasure covers in each generation that is not live, without windows.

    The result has the number for each generation, by the name of its schema.
    """
    statements, parameters = _choose_statements(erased)
    return await _count_in_schemas(connection, statements.counts, parameters)


@query
async def count_rows_of_inactive_generations_with(
    connection: Connection, tenant: str, user: str, words: str
) -> dict[str, int]:
    """Count a user's rows that contain the text `words`, for each generation that is not live.

    Letter case is ignored. The result has the number for each generation, by the name of its schema.
    """
    return await _count_in_schemas(connection, _SEARCHES, _bind_search(tenant, user, words))


def _bind_search(tenant: str, user: str, words: str) -> dict[str, Any]:
    once, twice = escape_as_json(words)
    return bind_owner(tenant, user) | {"words": words, "escaped_once": once, "escaped_twice": twice}


async def _count_in_schemas(
    connection: Connection, statements: Mapping[str, Statement], parameters: Mapping[str, Any]
) -> dict[str, int]:
    counts: dict[str, int] = {}
    async with connection.transaction(force_rollback=True), _open_schemas(connection) as schemas:
        for schema in schemas:
            existing = await _choose_existing(connection, schema, statements)
            counts[schema] = sum([await each.fetch_value(connection, parameters) for each in existing])
    return counts


@asynccontextmanager
async def _open_schemas(connection: Connection) -> AsyncIterator[list[str]]:
    """Yield the schemas of all generations that are not live, within the open transaction.

    A schema of another program is included if it has the name of a generation.
    At the end the search path leads to the connection's own generation again.
    """
    cursor = await connection.execute("SELECT current_schema(), array_agg(nspname::text) FROM pg_namespace")
    ((live, names),) = await cursor.fetchall()
    pattern = re.compile(rf"{re.escape(live)}{OTHERS}")
    yield sorted(each for each in names if pattern.fullmatch(each))
    await _set_search_path(connection, live)


async def _choose_existing(
    connection: Connection, schema: str, statements: Mapping[str, Statement]
) -> list[Statement]:
    """Set the search path to a generation, and return the statements on the projections that it has.

    An older generation may lack some projections. For a schema of another program, the list is empty.
    """
    await _set_search_path(connection, schema)
    cursor = await connection.execute(
        "SELECT array_agg(relname::text) FROM pg_class WHERE relnamespace = %s::regnamespace",
        [f'"{schema}"'],
    )
    ((tables,),) = await cursor.fetchall()
    if "replay" not in (tables or ()):
        return []  # the schema belongs to another program
    return [each for name, each in statements.items() if name in tables and name != windows.name]


async def _set_search_path(connection: Connection, schema: str) -> None:
    await connection.execute(SQL("SET LOCAL search_path TO {}").format(Identifier(schema)))
