"""A server that answers like the providers of language models on the wire, with faults that a test sets."""
