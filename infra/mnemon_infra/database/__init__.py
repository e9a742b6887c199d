"""PostgreSQL: the only place where SQL stands."""
