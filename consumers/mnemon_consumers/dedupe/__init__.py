"""The `dedupe` consumer, which decides if a proposal is kept, changes or repeats a fact, or is rejected."""
