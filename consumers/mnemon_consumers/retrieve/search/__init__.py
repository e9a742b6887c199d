"""Finds relevant items: candidates by words and by meaning, fused, looked up and reranked."""
