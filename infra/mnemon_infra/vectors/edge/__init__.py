"""Qdrant Edge, the embedded vector store."""
