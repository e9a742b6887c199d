"""Handlers of the verbs, by topic. Each handler returns a cached reply, or a coroutine for a reply."""
