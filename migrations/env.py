"""Alembic's entry: the connection comes from `infra.database.migrate`, with its search_path set."""

from alembic import context

from infra.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
)
context.run_migrations()
