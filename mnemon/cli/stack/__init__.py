"""Commands that run processes: the stack, consumers, and commands that start a stack for themselves."""
