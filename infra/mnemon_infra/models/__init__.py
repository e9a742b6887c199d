"""Embedding models, language models and rerankers, and the weights of words in sparse vectors."""
