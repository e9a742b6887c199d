"""The migrations create exactly the tables that `tables.py` declares."""

from typing import Any
from uuid import uuid4

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url
from sqlalchemy.pool import NullPool

from mnemon_infra.database.migration import (
    _make_config,
    find_head_revision,
    load_revision,
    migrate_schema,
)
from mnemon_infra.database.tables import metadata

REVISION_OF_0_2_0 = "0009"


def open_schema(database_url: str, schema: str) -> Engine:
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    return create_engine(url, poolclass=NullPool, connect_args={"options": f"-csearch_path={schema}"})


def compare_schema(connection: Connection) -> list[Any]:
    """List the differences between a schema and `tables.py`, comments of columns included."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, metadata))


def test_migrations_and_tables_agree(database_url: str) -> None:
    schema = f"test_{uuid4().hex[:12]}"
    engine = open_schema(database_url, schema)
    assert load_revision(engine.url, schema) is None
    assert migrate_schema(engine.url, schema) == migrate_schema(engine.url, schema) == find_head_revision()
    assert load_revision(engine.url, schema) == find_head_revision()
    with engine.connect() as connection:
        assert compare_schema(connection) == []


@pytest.fixture
def former_schema(database_url: str) -> str:
    """Name of a schema with the tables and the column comments of mnemon 0.2.0."""
    schema = f"test_{uuid4().hex[:12]}"
    with open_schema(database_url, schema).begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
        config = _make_config()
        config.attributes["connection"] = connection
        command.upgrade(config, REVISION_OF_0_2_0)
    return schema


def test_comments_of_a_former_version_are_replaced_once(database_url: str, former_schema: str) -> None:
    engine = open_schema(database_url, former_schema)
    with engine.connect() as connection:
        comments = {each["name"]: each["comment"] for each in inspect(connection).get_columns("windows")}
    assert comments["attempts"] == "That failed"

    written: list[str] = []

    def record(_connection: Any, _cursor: Any, statement: str, *_context: Any) -> None:
        if "COMMENT ON COLUMN" in statement:
            written.append(statement)

    event.listen(Engine, "before_cursor_execute", record)
    try:
        migrate_schema(engine.url, former_schema)
        (comments_written,) = written
        assert (
            "COMMENT ON COLUMN windows.attempts IS 'Number of attempts that have failed';" in comments_written
        )
        assert "COMMENT ON COLUMN batches.state " not in comments_written
        with engine.connect() as connection:
            assert compare_schema(connection) == []

        written.clear()
        migrate_schema(engine.url, former_schema)
        assert written == []
    finally:
        event.remove(Engine, "before_cursor_execute", record)
