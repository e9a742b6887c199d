"""Parts of a process: cancellation, faults, gate, disk space, sparse copies, data folder, priorities."""
