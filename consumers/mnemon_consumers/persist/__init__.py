"""Projects the log into PostgreSQL, exactly once and in any order."""
