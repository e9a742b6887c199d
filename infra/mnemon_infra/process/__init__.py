"""Inside a process: cancellation, faults, gate, disk space, sparse copies, data folder, request priority."""
