"""Alembic's entry: the connection comes from `mnemon_infra.database.migration`, with its search_path set."""

from alembic import context

from mnemon_infra.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
)
context.run_migrations()
