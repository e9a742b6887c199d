"""Connections to the outside: broker, database, settings, telemetry, the embedded stack."""
