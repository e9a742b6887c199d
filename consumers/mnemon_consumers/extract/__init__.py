"""The `extract` consumer, which extracts facts from messages with a language model, in batches or online."""
