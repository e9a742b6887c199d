"""Parts of HTTP services: server, sockets, processes that start on demand, and waits after failed logins."""
