"""HTTP in a process of mnemon: socket, server, slowed-down logins."""
