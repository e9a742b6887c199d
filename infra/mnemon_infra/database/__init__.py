"""PostgreSQL access: connections, schema, and the SQL of all projections.

Functions that take a `Database` raise `DatabaseUnavailable` if the database cannot answer now. In that case
they have changed nothing, unless their docstring says otherwise or the connection was lost during the commit.
"""
