"""Telemetry: metrics, traces, logs and health checks."""
