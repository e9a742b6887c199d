"""HTTP in a process of mnemon: socket, server, and waits after failed logins."""
