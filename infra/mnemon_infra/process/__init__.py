"""Process-wide parts: cancellation, faults, gates, disk space, sparse copies, data folder, request priority."""
