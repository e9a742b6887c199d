"""Search of one scope of a user's memory, with a module for each scope."""
