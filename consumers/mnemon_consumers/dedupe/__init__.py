"""The `dedupe` consumer, which decides whether each proposed fact is kept, merged or rejected."""
