"""Entry point of Alembic, on the connection that `mnemon_infra.database.migration` opens."""

from alembic import context

from mnemon_infra.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
)
context.run_migrations()
