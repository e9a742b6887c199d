"""Memory of each user: what is cached, and how it is read."""
