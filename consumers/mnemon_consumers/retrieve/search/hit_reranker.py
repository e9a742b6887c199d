"""Hit reranker: relevance of hits by a model, within a time limit, with a pause after a failure."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import structlog

from mnemon_contracts.settings.groups import Retrieval
from mnemon_infra.models.reranker import Reranker, RerankerUnavailable

RERANKER_PAUSE: Final = 5.0
"""Seconds after a failure during which a model is not asked, so that turns do not wait for the model. A model
that was given less than its whole time limit is not paused."""

MARGIN: Final = 0.05
"""Seconds by which reranking ends before the caller stops waiting, so that the caller gets its hits."""

log = structlog.get_logger("search")


class HitReranker:
    """Asks a reranker for the relevance of texts. All searches of a process share one instance.

    Each model has a pause of its own after a failure, so that a tenant who names a wrong model does not take
    the reranker from other tenants.
    """

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self._resumes_at: dict[str, float] = {}

    async def score_texts(
        self, query: str, texts: Sequence[str], settings: Retrieval, until: float | None
    ) -> Sequence[float] | None:
        """Return the relevance of each text; None if the model is paused or fails, or if no time is left.

        Args:
            query: the query of the search.
            texts: texts that are not blank.
            settings: settings of the tenant; they name a reranker.
            until: time of the event loop at which the caller stops waiting; None without such a time.
        """
        model = settings.reranker
        assert model is not None, "the caller checks it"
        if time.monotonic() < self._resumes_at.get(model, 0.0):
            return None
        limit = allowed = settings.reranker_timeout_ms / 1000
        if until is not None:
            allowed = min(limit, until - MARGIN - asyncio.get_running_loop().time())
        if allowed <= 0:
            return None
        try:
            return await self._reranker.score_texts(model, query, texts, allowed)
        except RerankerUnavailable as error:
            # With less than its time, a model has not shown that it fails.
            if allowed == limit:
                self._resumes_at[model] = time.monotonic() + RERANKER_PAUSE
            log.warning("reranking failed, keeping the order", model=model, error=str(error))
            return None
