"""Projects the log into PostgreSQL, exactly once and whatever the order of events."""
