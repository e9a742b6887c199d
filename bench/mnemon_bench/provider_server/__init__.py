"""A server that answers as the providers of language models do on the wire, and fails as it is told to."""
