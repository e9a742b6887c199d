"""Telemetry: metrics, traces, logs, and the HTTP endpoint of metrics and health probes."""
