"""Users' memory: the cache, the reader of projections, and the follower of the log."""
