"""The migrations make the tables that the statements are written for."""

from uuid import uuid4

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, make_url
from sqlalchemy.pool import NullPool

from mnemon_infra.database.migration import current_revision, head_revision, migrate
from mnemon_infra.database.tables import metadata


def test_migrations_and_tables_agree(database_url: str) -> None:
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    schema = f"test_{uuid4().hex[:12]}"
    assert current_revision(url, schema) is None
    assert migrate(url, schema) == migrate(url, schema) == head_revision()
    assert current_revision(url, schema) == head_revision()
    engine = create_engine(url, poolclass=NullPool, connect_args={"options": f"-csearch_path={schema}"})
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
