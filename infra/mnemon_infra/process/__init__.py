"""Parts of a process, such as its data folder, child processes, faults, and the priority of requests."""
