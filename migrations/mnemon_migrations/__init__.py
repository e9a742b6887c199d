"""Alembic migrations. They run in whichever schema the connection's search_path names."""
