"""Names of the streams and buckets. A publisher names its stream, so that no event is lost outside of it."""

LOG = "LOG"
"""The log: every event of the bots, and every event derived from them."""

WORK = "WORK"
"""Triggers and schedules; lost ones are derived again."""

DEAD = "DEAD"
"""Dead letters."""

SETTINGS = "settings"
"""The key-value bucket of the run-time settings."""
