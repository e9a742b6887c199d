"""Handlers of the verbs, by topic. Each returns a cached reply, or a coroutine for one."""
