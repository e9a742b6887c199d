"""Names of the streams and buckets.

A publisher names the stream of its message, so that the server refuses a subject of another stream.
"""

LOG = "LOG"
"""The log: every event of the bots, and every event derived from them."""

WORK = "WORK"
"""The stream of triggers and schedules. Consumers derive lost triggers again."""

DEAD = "DEAD"
"""The stream of dead letters."""

SETTINGS = "settings"
"""The key-value bucket of the run-time settings."""

API_KEYS = "api_keys"
"""The key-value bucket of the API keys of the gateway; it has the hashes of the keys, not the keys."""
