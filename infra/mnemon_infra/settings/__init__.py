"""Run-time settings, live in every process."""
