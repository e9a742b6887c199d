"""Parts of a process: cancellation, faults, gates, disk space, sparse copies, data folder, priorities."""
