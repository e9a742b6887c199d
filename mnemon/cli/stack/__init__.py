"""Commands that run processes: the stack, consumers, and what starts a stack for itself."""
