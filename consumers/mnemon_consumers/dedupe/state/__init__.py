"""State of a user's facts, folded from the log."""
