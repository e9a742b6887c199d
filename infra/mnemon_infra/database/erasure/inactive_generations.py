"""Erasure in the generations that are not live.

No consumer writes to these generations, so no consumer applies erasures there.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from psycopg.sql import SQL, Identifier
from sqlalchemy import ColumnElement, Table, delete, func, select

from mnemon_infra.broker.streams.erasure_scope import ErasedConversation, ErasedUser
from mnemon_infra.database.engine import Connection, Database, Query, Statement, query
from mnemon_infra.database.erasure.predicates import (
    CONVERSATION_TABLES,
    bind_erasure,
    is_covered_by_parameters,
)
from mnemon_infra.database.erasure.users import BELOW, PROJECTED_TABLES, contains_words, is_below
from mnemon_infra.database.projections.event_order import bind_owner, is_owned
from mnemon_infra.generation_names import OTHERS

Erased = ErasedUser | ErasedConversation


def _deletions(
    tables: tuple[Table, ...], which: Callable[[Table], ColumnElement[bool]]
) -> dict[str, Statement]:
    return {table.name: Statement(delete(table).where(is_owned(table), which(table))) for table in tables}


def _counts(tables: tuple[Table, ...], which: Callable[[Table], ColumnElement[bool]]) -> dict[str, Statement]:
    return {
        table.name: Statement(select(func.count()).select_from(table).where(is_owned(table), which(table)))
        for table in tables
    }


_OF_USERS: Final = _deletions(PROJECTED_TABLES, lambda table: is_below(table, BELOW))
_OF_CONVERSATIONS: Final = _deletions(CONVERSATION_TABLES, is_covered_by_parameters)
_COUNTS_OF_USERS: Final = _counts(PROJECTED_TABLES, lambda table: is_below(table, BELOW))
_COUNTS_OF_CONVERSATIONS: Final = _counts(CONVERSATION_TABLES, is_covered_by_parameters)
_SEARCHES: Final = _counts(PROJECTED_TABLES, contains_words)


async def erase_in_inactive_generations(database: Database, erased: Erased) -> None:
    """Delete the rows that an erasure covers in all generations that are not live.

    Raises:
        DatabaseUnavailable: some rows may be left; the call can be repeated.
    """
    whose, statements = _choose_statements(erased, _OF_USERS, _OF_CONVERSATIONS)
    async with database.transaction() as connection, _open_schemas(connection) as schemas:
        for schema in schemas:
            for statement in await _choose_existing(connection, schema, statements):
                await statement.execute_each(connection, [whose])


def count_in_inactive_generations(erased: Erased) -> Query[dict[str, int]]:
    """Count the rows that an erasure covers in each generation that is not live."""
    whose, statements = _choose_statements(erased, _COUNTS_OF_USERS, _COUNTS_OF_CONVERSATIONS)
    return _count_rows(whose, statements)


def search_inactive_generations(tenant: str, user: str, words: str) -> Query[dict[str, int]]:
    """Count the rows of a user that contain some words, in any case, in each generation that is not live."""
    return _count_rows(bind_owner(tenant, user) | {"words": words}, _SEARCHES)


@query
async def _count_rows(
    connection: Connection, whose: Mapping[str, Any], statements: Mapping[str, Statement]
) -> dict[str, int]:
    counts: dict[str, int] = {}
    async with connection.transaction(force_rollback=True), _open_schemas(connection) as schemas:
        for schema in schemas:
            found = await _choose_existing(connection, schema, statements)
            counts[schema] = sum([(await each.fetch_row(connection, whose))[0] for each in found])
    return counts


def _choose_statements(
    erased: Erased, of_users: dict[str, Statement], of_conversations: dict[str, Statement]
) -> tuple[dict[str, Any], dict[str, Statement]]:
    if isinstance(erased, ErasedUser):
        return bind_owner(*erased.owner) | {"below": erased.below}, of_users
    return bind_erasure(erased), of_conversations


@asynccontextmanager
async def _open_schemas(connection: Connection) -> AsyncIterator[list[str]]:
    """Yield the schemas of all other generations, within the open transaction.

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
    """Return the statements whose tables exist in a generation: an older one lacks some of them."""
    await _set_search_path(connection, schema)
    cursor = await connection.execute(
        "SELECT array_agg(relname::text) FROM pg_class WHERE relnamespace = %s::regnamespace",
        [f'"{schema}"'],
    )
    ((there,),) = await cursor.fetchall()
    if "replay" not in (there or ()):
        return []  # the schema belongs to another program
    return [statement for name, statement in statements.items() if name in there]


async def _set_search_path(connection: Connection, schema: str) -> None:
    await connection.execute(SQL("SET LOCAL search_path TO {}").format(Identifier(schema)))
