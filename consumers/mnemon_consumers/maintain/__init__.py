"""The `maintain` consumer, which expires facts, checks limits of facts and removes finished work."""
