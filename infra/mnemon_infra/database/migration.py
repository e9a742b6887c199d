"""Migration of a schema to the revision that this version of mnemon needs.

Functions import Alembic only if they need it: the import takes a third of a second at each start.
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
from sqlalchemy.schema import CreateSchema

from mnemon_infra.database.engine import Connection, Database, DatabaseUnavailable, meaning, no_connection

if TYPE_CHECKING:
    from alembic.config import Config

_CONNECT = {"connect_timeout": 5, "client_encoding": "utf8"}


class SchemaTooNew(Exception):
    """A newer mnemon prepared the schema. This version would misread it, and does not touch it."""

    def __init__(self, schema: str, revision: str) -> None:
        super().__init__(
            f"the database was prepared by a newer mnemon (schema {schema} is at revision {revision}, this "
            f"version knows {head_revision()} at most): upgrade mnemon. Nothing has been changed"
        )


def migrate(url: URL, schema: str) -> str:
    """Create the schema if it is absent, and migrate it to the newest revision.

    Returns:
        The revision of the schema now.

    Raises:
        DatabaseUnavailable: the database does not answer.
        SchemaTooNew: the schema belongs to a newer version; nothing was changed.
    """
    from alembic import command

    with _connected(url) as connection, connection.begin():
        # Several processes may start at once: the lock makes them migrate one after the other.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"mnemon:{schema}",))
        if (found := _revision(connection, schema)) and not is_known(found):
            raise SchemaTooNew(schema, found)
        connection.execute(CreateSchema(schema, if_not_exists=True))
        connection.exec_driver_sql(f'SET LOCAL search_path = "{schema}"')
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return head_revision()


async def require_head(database: Database, schema: str) -> None:
    """Refuse a schema that is not at the revision of this version.

    Raises:
        DatabaseUnavailable: the schema is older and needs a migration, or the database does not answer.
        SchemaTooNew: the schema belongs to a newer version.
    """

    async def revision(connection: Connection) -> str | None:
        row = await (await connection.execute("SELECT version_num FROM alembic_version")).fetchone()
        return str(row[0]) if row else None

    found = await database.read(revision)
    if found and not is_known(found):
        raise SchemaTooNew(schema, found)
    if found != head_revision():
        raise DatabaseUnavailable(
            f"schema {schema} is at revision {found}, this version needs {head_revision()}: "
            "run `mnemon migrate`"
        )


def current_revision(url: URL, schema: str) -> str | None:
    """Return the revision of a schema; None if it has none.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    with _connected(url) as connection:
        return _revision(connection, schema)


def head_revision() -> str:
    """Return the newest revision that this version of mnemon knows."""
    return _revisions()[-1]


def is_known(revision: str) -> bool:
    """Return whether this version of mnemon contains the migration to a revision."""
    return revision in _revisions()


@cache
def _revisions() -> list[str]:
    """List all revisions, oldest first, from the names of the migration files."""
    names = (file.name for file in (files("mnemon_migrations") / "versions").iterdir())
    found = sorted(match[1] for match in map(re.compile(r"(\d{4})_\w+\.py").fullmatch, names) if match)
    if not found:
        raise LookupError("no migrations are installed")
    return found


@contextmanager
def _connected(url: URL) -> Iterator[sqlalchemy.Connection]:
    try:
        connection = create_engine(url, poolclass=NullPool, connect_args=_CONNECT).connect()
    except DBAPIError as error:
        shown = url.set(drivername="postgresql").render_as_string(hide_password=True)
        raise no_connection(shown, error.orig or error) from error
    try:
        with connection:
            yield connection
    except DBAPIError as error:
        raise (meaning(error.orig) if isinstance(error.orig, Exception) else error) from error


def _revision(connection: sqlalchemy.Connection, schema: str) -> str | None:
    from alembic.migration import MigrationContext

    return MigrationContext.configure(
        connection, opts={"version_table_schema": schema}
    ).get_current_revision()


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files("mnemon_migrations")))
    config.set_main_option("path_separator", "os")
    return config
