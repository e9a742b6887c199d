"""The admin page: status, users and their memory, and settings, rendered on the server as HTML."""
