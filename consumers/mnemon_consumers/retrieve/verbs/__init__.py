"""The verbs, by topic. Each answers at once from what is at hand, or gives a coroutine that reads it."""
