"""Bringing a schema to what this version of mnemon needs."""

from importlib.resources import files

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, create_engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateSchema

from infra.database.engine import DatabaseUnavailable

_CONNECT = {"connect_timeout": 5, "client_encoding": "utf8"}


def migrate(url: URL, schema: str) -> str:
    """Create the schema if it is absent, and bring it to the newest revision.

    Returns:
        The revision it is at now.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    engine = create_engine(url, poolclass=NullPool, connect_args=_CONNECT)
    try:
        with engine.begin() as connection:
            # Several processes may start at once: the lock lets them migrate one after the other.
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"mnemon:{schema}",))
            connection.execute(CreateSchema(schema, if_not_exists=True))
            connection.exec_driver_sql(f'SET LOCAL search_path = "{schema}"')
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except OperationalError as error:
        raise DatabaseUnavailable(str(error.orig).strip()) from error
    return head_revision()


def current_revision(url: URL, schema: str) -> str | None:
    """The revision a schema is at; None when there is none.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    engine = create_engine(url, poolclass=NullPool, connect_args=_CONNECT)
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(
                connection, opts={"version_table_schema": schema}
            ).get_current_revision()
    except OperationalError as error:
        raise DatabaseUnavailable(str(error.orig).strip()) from error


def head_revision() -> str:
    """The newest revision that this version of mnemon knows."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise LookupError("no migrations are installed")
    return head


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("migrations")))
    config.set_main_option("path_separator", "os")
    return config
