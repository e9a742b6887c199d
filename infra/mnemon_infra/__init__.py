"""Connections to the outside: broker, database, vectors, models, storage, telemetry, the embedded stack."""
