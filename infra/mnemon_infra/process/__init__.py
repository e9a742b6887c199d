"""Process-wide parts: cancellation, faults, gates, disk space, the data folder, the priority of requests."""
