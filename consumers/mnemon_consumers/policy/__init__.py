"""Which sentences are kept as facts at all: asked of what is proposed, and of what is changed by hand."""
