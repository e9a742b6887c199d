"""What touches the outside: broker, database, settings, telemetry, the embedded stack."""
