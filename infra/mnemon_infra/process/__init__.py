"""Process-wide parts: cancellation, faults, gates, the data folder, and the priority of requests."""
