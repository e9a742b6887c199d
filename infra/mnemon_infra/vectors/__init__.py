"""Vector stores, the embedding model that their vectors belong to, and generations of vectors."""
