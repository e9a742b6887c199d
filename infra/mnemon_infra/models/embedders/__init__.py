"""Embedders: static vectors, models of FastEmbed and OpenAI-compatible endpoints, and the choice of one."""
