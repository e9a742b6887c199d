"""Alembic migrations, which run in the schema that the search_path of the connection names."""
