"""Commands on the memory of one user."""
