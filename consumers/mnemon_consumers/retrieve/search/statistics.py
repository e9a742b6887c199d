"""Word statistics of tenants' texts, for rankings and embedding models that weigh words by rarity."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog
from cachetools import LRUCache

from mnemon_consumers.retrieve.search.term_statistics import NO_STATISTICS, TermStatistics
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.messages.sample import SampledText, load_sample
from mnemon_infra.models.embedding import CorpusStatistics, Embedder, EmbeddingUnavailable
from mnemon_infra.vectors.texts import Texts, build_message_texts

log = structlog.get_logger("search")

RECOUNT_SECONDS: Final = 300.0
"""Seconds after which the words of a tenant that has changed are counted again on the next request."""

TENANTS: Final = 1000
"""Maximum number of recently requested tenants whose statistics are cached; each takes about 200 KB."""


class WordStatistics(NamedTuple):
    """Statistics of the words of a tenant.

    Attributes:
        tokens: rarity of the embedding model's tokens; None without a model that uses it.
        terms: rarity of stemmed words and of their concepts.
    """

    tokens: CorpusStatistics | None
    terms: TermStatistics


NOT_COUNTED: Final = WordStatistics(None, NO_STATISTICS)


class StatisticsCache:
    """Cache of the word statistics of tenants, counted in samples of their texts.

    Queries do not wait for a count: a query before the first count uses no statistics.
    """

    def __init__(
        self, database: Database, embedder: Embedder | None, revision_of: Callable[[str], object]
    ) -> None:
        """Create an empty cache.

        `revision_of` returns an object that stands for the revision of a tenant's memory; another object
        means that the memory of one of the tenant's users may have changed.
        """
        self._database = database
        self._embedder = embedder
        self._revision_of = revision_of
        self._counted: LRUCache[str, object] = LRUCache(TENANTS)
        self._known: LRUCache[str, WordStatistics] = LRUCache(TENANTS)
        self._due: LRUCache[str, float] = LRUCache(TENANTS)
        self._counting: set[asyncio.Task[None]] = set()

    def get_statistics(self, tenant: str) -> WordStatistics:
        """Return the statistics of a tenant as last counted; `NOT_COUNTED` before the first count.

        Start a count if none was started within the last `RECOUNT_SECONDS`, and the memory of one of the
        tenant's users may have changed since the last count.
        """
        is_due = time.monotonic() >= self._due.get(tenant, 0.0)
        if is_due and self._counted.get(tenant) is not self._revision_of(tenant):
            self._due[tenant] = time.monotonic() + RECOUNT_SECONDS
            task = asyncio.create_task(self.count_words(tenant))
            self._counting.add(task)
            task.add_done_callback(self._counting.discard)
        return self._known.get(tenant, NOT_COUNTED)

    def expire_counts(self) -> None:
        """Make the next request of each tenant count the words of the tenant again."""
        self._due.clear()
        self._counted.clear()

    async def count_words(self, tenant: str) -> None:
        """Count the words in a sample of a tenant's texts, for the next `get_statistics`.

        If the database or the embedder does not answer, the former statistics stay, if any.
        """
        revision = self._revision_of(tenant)
        try:
            (sample,) = await self._database.run_query(load_sample([tenant]))
            texts = await asyncio.to_thread(lambda: [build_sampled_texts(each) for each in sample])
            tokens = (
                await self._embedder.compute_statistics([each.meaning for each in texts])
                if self._embedder
                else None
            )
            terms = await asyncio.to_thread(TermStatistics.from_texts, [each.words for each in texts])
            self._known[tenant] = WordStatistics(tokens, terms)
            self._counted[tenant] = revision
        except (DatabaseUnavailable, EmbeddingUnavailable) as error:
            log.warning(
                "term statistics update failed, former statistics kept", tenant=tenant, error=str(error)
            )


def build_sampled_texts(sampled: SampledText) -> Texts:
    """Return the texts by which a search finds a sampled message or fact."""
    if sampled.sent_at is None:
        return Texts(sampled.text, sampled.text)
    return build_message_texts(sampled.text, sampled.name, sampled.sent_at)
