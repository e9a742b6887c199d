"""Names of the streams and buckets. A publisher names its stream, so that no event is lost outside of it."""

LOG = "LOG"
"""The truth: every event of the bots, and every event derived from them."""

WORK = "WORK"
"""Triggers and schedules, which can be lost and derived again."""

DEAD = "DEAD"
"""Dead letters."""

SETTINGS = "settings"
"""The key-value bucket of the run-time settings."""
