"""The `maintain` consumer, which expires facts, checks limits of facts and removes old work."""
