"""Run-time settings, which every process follows."""
