"""A server with the wire formats of the providers of language models, and with faults that a test sets."""
