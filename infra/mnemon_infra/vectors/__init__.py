"""Vector stores, the embedding model that their vectors belong to, and generations of vectors.

Functions that reach the vector store raise `VectorsUnavailable` if it does not answer.
"""
