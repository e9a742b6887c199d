"""PostgreSQL access: the only package that contains SQL."""
