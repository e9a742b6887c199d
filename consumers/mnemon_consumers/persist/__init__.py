"""The `persist` consumer, which projects the log into PostgreSQL, exactly once and in any order."""
