"""PostgreSQL's column statistics contain no text of messages, profiles or tasks."""

from uuid import uuid4

import pytest
from alembic import command
from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.pool import NullPool

from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.users import count_statistics_with
from mnemon_infra.database.migration import _make_config, migrate_schema
from mnemon_infra.database.tables import metadata
from tests.support.stock_client import Stock, persisted

_SAMPLED = """
    SELECT tablename || '.' || attname FROM pg_stats
    WHERE schemaname = current_schema()
      AND concat_ws(' ', most_common_vals::text, histogram_bounds::text) LIKE '%%otter%%'
"""

IDS = {
    *(
        "tenant",
        "user_id",
        "event_id",
        "conversation",
        "item",
        "proposal_id",
        "batch_id",
        "provider_batch_id",
    ),
    *("event", "role", "provider", "model", "purpose", "state", "reached"),
}
"""Text columns that hold ids and values that mnemon defines; their statistics may be collected."""


def sampled(connection: Connection) -> list[str]:
    connection.exec_driver_sql("ANALYZE")
    return [row[0] for row in connection.exec_driver_sql(_SAMPLED)]


@pytest.mark.long
async def test_statistics_contain_no_text_of_users(mnemon: Deployment, stock: Stock) -> None:
    for number in range(20):
        said = await stock.say(f"the otter {number % 3}", name="otter", metadata={"otter": number % 3})
        await stock.publish("memory.acme.u1.profile.set.v1", {"fields": {"animal": "otter"}})
        await stock.publish(
            "memory.acme.u1.task.added.v1", {"task_id": f"t{number}", "text": "feed the otter"}
        )
    await persisted(stock.connection, await read_log_end(stock.connection.jetstream()))
    assert await stock.contents(min_seq=said, limit=1) == ["the otter 1"]
    url = mnemon.database_url
    assert url is not None
    options = {"options": f"-csearch_path={mnemon.database_schema}"}
    engine = create_engine(url, poolclass=NullPool, connect_args=options)
    async with Database(mnemon) as database:
        with engine.connect() as connection:
            assert sampled(connection) == []
            assert await database.run_query(count_statistics_with("otter")) == 0
            # The count that follows an erasure finds a column whose statistics an administrator has enabled.
            connection.exec_driver_sql("ALTER TABLE messages ALTER COLUMN content SET STATISTICS 100")
            assert sampled(connection) == ["messages.content"]
            connection.commit()
        assert await database.run_query(count_statistics_with("The OTTER")) == 1


async def test_sampled_text_is_found_whatever_postgresql_escapes(mnemon: Deployment, stock: Stock) -> None:
    words = '"Hi" C:\\new\nline'
    for _ in range(20):
        said = await stock.say(f"They said {words}!", metadata={"quote": f"They said {words}!"})
    await persisted(stock.connection, said)
    assert mnemon.database_url is not None
    options = {"options": f"-csearch_path={mnemon.database_schema}"}
    engine = create_engine(mnemon.database_url, poolclass=NullPool, connect_args=options)
    with engine.connect() as connection:
        for column in ("content", "metadata"):
            connection.exec_driver_sql(f"ALTER TABLE messages ALTER COLUMN {column} SET STATISTICS 100")
        connection.exec_driver_sql("ANALYZE messages")
        connection.commit()
    async with Database(mnemon) as database:
        assert await database.run_query(count_statistics_with(words)) == 2
        assert await database.run_query(count_statistics_with(f"{words}?")) == 0


def test_samples_of_earlier_versions_are_removed(database_url: str) -> None:
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    schema = f"test_{uuid4().hex[:12]}"
    options = {"options": f"-csearch_path={schema}"}
    engine = create_engine(url, poolclass=NullPool, connect_args=options)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
        config = _make_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0008")
        connection.exec_driver_sql(
            "INSERT INTO messages (tenant, user_id, event_id, seq, content, sent_at) "
            "SELECT 'acme', 'u1', number, number, 'the otter', now() FROM generate_series(1, 20) AS number"
        )
        assert sampled(connection) == ["messages.content"]
        connection.exec_driver_sql("DELETE FROM messages")
        connection.commit()
    migrate_schema(url, schema)
    with engine.connect() as connection:
        assert [row[0] for row in connection.exec_driver_sql(_SAMPLED)] == []
        assert connection.exec_driver_sql("SELECT count(*) FROM pg_stats WHERE attname = 'role'").scalar()


def test_every_column_of_content_is_left_out(database_url: str) -> None:
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    schema = f"test_{uuid4().hex[:12]}"
    migrate_schema(url, schema)
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        left_out = connection.exec_driver_sql(
            "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
            "WHERE relnamespace = %s::regnamespace AND attstattarget = 0",
            (schema,),
        )
        found = {tuple(row) for row in left_out}
    assert found == {
        (table.name, column.name)
        for table in metadata.sorted_tables
        for column in table.c
        if str(column.type) in ("TEXT", "JSONB") and column.name not in IDS
    }
