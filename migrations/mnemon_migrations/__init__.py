"""Alembic migrations. They run in the schema that the connection's search_path names."""
