"""Refusals of embedding models in this process, for the health probe."""

from typing import Final

EMBEDDING_REFUSALS: Final[dict[str, str]] = {}
"""Embedding models whose endpoint refused the last request, with the reason; refused texts do not count."""
