"""Events of the log."""
