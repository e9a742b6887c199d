"""Migrated schemas: the migrations run once in a process, and later schemas repeat their statements."""

from functools import cache
from typing import Any

import psycopg
from sqlalchemy import URL, Engine, event

from mnemon_infra.database.migration import migrate_schema


def create_schema(url: URL | None, schema: str) -> None:
    """Create a schema at the newest revision, as `migrate_schema` does, in a quarter of the time."""
    assert url is not None
    statements = _record_migrations(url)
    with psycopg.connect(_dsn(url)) as connection:
        begin = f'CREATE SCHEMA "{schema}"; SET LOCAL search_path = "{schema}";\n'
        connection.execute((begin + statements).encode())


@cache
def _record_migrations(url: URL) -> str:
    """Migrate the schema `recorded`, and return the SQL statements that changed it."""
    statements: list[str] = []

    def record(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_context: Any) -> None:
        assert statement.startswith("SELECT") or not parameters, "statements are repeated without parameters"
        # SQLAlchemy escapes "%" for the driver, which unescapes it only in statements with parameters.
        statements.append(statement.strip().replace("%%", "%"))

    event.listen(Engine, "before_cursor_execute", record)
    try:
        migrate_schema(url, "recorded")
    finally:
        event.remove(Engine, "before_cursor_execute", record)
    first = statements.index('SET LOCAL search_path = "recorded"') + 1
    return ";\n".join(each for each in statements[first:] if not each.startswith("SELECT"))


def _dsn(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
