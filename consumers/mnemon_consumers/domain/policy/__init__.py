"""Policy: which facts may be kept, and for how long."""
