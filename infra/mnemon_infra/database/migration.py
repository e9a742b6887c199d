"""Migration of a schema to the revision that this version of mnemon needs.

Only functions that need Alembic import it, because the import takes a third of a second.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import sqlalchemy
from sqlalchemy import URL, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateSchema, SetColumnComment

from mnemon_infra.database.engine import (
    Connection,
    Database,
    DatabaseUnavailable,
    make_connection_error,
    redact_database_url,
    translate_error,
)
from mnemon_infra.database.tables import metadata

if TYPE_CHECKING:
    from alembic.config import Config

_CONNECT = {"connect_timeout": 5, "client_encoding": "utf8"}


class SchemaTooNew(Exception):
    """A newer version of mnemon migrated the schema, so this version cannot read it."""

    def __init__(self, schema: str, revision: str) -> None:
        super().__init__(
            f"the database was prepared by a newer mnemon (schema {schema} is at revision {revision}, this "
            f"version knows {find_head_revision()} at most). Nothing has been changed. Upgrade mnemon, or "
            "name another schema in MNEMON_DATABASE_SCHEMA for this version"
        )


def migrate_schema(url: URL, schema: str) -> str:
    """Create the schema if it is absent, and migrate it to the newest revision.

    A changed comment of a column needs no revision, so that a former version still accepts the schema.

    Returns:
        The revision of the migrated schema.

    Raises:
        DatabaseUnavailable: the database does not answer, or the role lacks a right.
        SchemaTooNew: the schema belongs to a newer version; nothing was changed.
    """
    from alembic import command

    with _open_connection(url) as connection, connection.begin():
        # Several processes may start at once: the lock makes them migrate one after the other.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"mnemon:{schema}",))
        if (found := _load_revision(connection, schema)) and not is_known_revision(found):
            raise SchemaTooNew(schema, found)
        connection.execute(CreateSchema(schema, if_not_exists=True))
        connection.exec_driver_sql(f'SET LOCAL search_path = "{schema}"')
        config = _make_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        _write_comments(connection, schema)
    return find_head_revision()


_COMMENTS = """SELECT class.relname, attribute.attname, col_description(class.oid, attribute.attnum)
FROM pg_class AS class JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid
WHERE class.relnamespace = %s::regnamespace AND class.relkind IN ('r', 'p') AND attribute.attnum > 0
"""


def _write_comments(connection: sqlalchemy.Connection, schema: str) -> None:
    """Set the comments of `tables.py` on the columns whose comments in the schema differ."""
    rows = connection.exec_driver_sql(_COMMENTS, (f'"{schema}"',))
    found = {(table, column): comment for table, column, comment in rows}
    changes = [
        str(SetColumnComment(column).compile(dialect=connection.dialect))
        for table in metadata.sorted_tables
        for column in table.c
        if column.comment and column.comment != found.get((table.name, column.name))
    ]
    if changes:
        # One round trip: a new schema gets dozens of comments.
        connection.exec_driver_sql(f"DO $comments$ BEGIN {'; '.join(changes)}; END $comments$")


async def require_head_revision(database: Database, schema: str) -> None:
    """Check that the schema of a database has the revision of this version of mnemon.

    `schema` is its name, for messages.

    Raises:
        DatabaseUnavailable: the schema is absent or older, or the database does not answer.
        SchemaTooNew: the schema belongs to a newer version.
    """

    async def fetch_revision(connection: Connection) -> str | None:
        row = await (await connection.execute("SELECT version_num FROM alembic_version")).fetchone()
        return str(row[0]) if row else None

    found = await database.run_query(fetch_revision)
    if found and not is_known_revision(found):
        raise SchemaTooNew(schema, found)
    if found != find_head_revision():
        state = f"is at revision {found}" if found else "has no revision"
        raise DatabaseUnavailable(
            f"schema {schema} {state}, but this version needs {find_head_revision()}: run `mnemon migrate`"
        )


def load_revision(url: URL, schema: str) -> str | None:
    """Return the revision of a schema; None if it has no revision.

    Raises:
        DatabaseUnavailable: the database does not answer, or the role lacks a right.
    """
    with _open_connection(url) as connection:
        return _load_revision(connection, schema)


def find_head_revision() -> str:
    """Return the newest revision that this version of mnemon knows."""
    return _list_revisions()[-1]


def is_known_revision(revision: str) -> bool:
    """Return whether this version of mnemon contains the migration to a revision."""
    return revision in _list_revisions()


@cache
def _list_revisions() -> list[str]:
    """List all revisions, oldest first, from the names of the migration files."""
    names = (file.name for file in (files("mnemon_migrations") / "versions").iterdir())
    found = sorted(match[1] for match in map(re.compile(r"(\d{4})_\w+\.py").fullmatch, names) if match)
    if not found:
        raise LookupError("the package mnemon_migrations has no migrations: install mnemon again")
    return found


@contextmanager
def _open_connection(url: URL) -> Iterator[sqlalchemy.Connection]:
    try:
        connection = create_engine(url, poolclass=NullPool, connect_args=_CONNECT).connect()
    except DBAPIError as error:
        raise make_connection_error(redact_database_url(url), error.orig or error) from error
    try:
        with connection:
            yield connection
    except DBAPIError as error:
        raise (translate_error(error.orig) if isinstance(error.orig, Exception) else error) from error


def _load_revision(connection: sqlalchemy.Connection, schema: str) -> str | None:
    from alembic.migration import MigrationContext

    return MigrationContext.configure(
        connection, opts={"version_table_schema": schema}
    ).get_current_revision()


def _make_config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files("mnemon_migrations")))
    config.set_main_option("path_separator", "os")
    return config
