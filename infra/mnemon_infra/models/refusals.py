"""Refusals of embedding models in this process, for the health probe."""

from typing import Final

EMBEDDING_REFUSALS: Final[dict[str, str]] = {}
"""Embedding models whose endpoint has refused a request and answered none since, with the reason.

The refusal of a single text does not count.
"""
