"""Search of facts, and of the facts that share a name with facts found."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog
from cachetools import TTLCache

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.candidates import CandidateFinder
from mnemon_consumers.retrieve.search.facts.links import (
    MOST_FACTS_PER_NAME,
    LeadingFact,
    NameSpellings,
    find_leading_facts,
    list_spellings,
    score_links,
)
from mnemon_consumers.retrieve.search.facts.persons import find_query_person
from mnemon_consumers.retrieve.search.facts.ranking import merge_rankings, rank_facts
from mnemon_consumers.retrieve.search.fusion import QueryWords
from mnemon_consumers.retrieve.search.hits import RankedHit, mark_doubtful
from mnemon_consumers.retrieve.search.levels import WHOLE, ScopeParts
from mnemon_consumers.retrieve.search.query.query_embedder import EmbeddedQuery
from mnemon_consumers.retrieve.search.scopes.inputs import ScopeAnswer, ScopeInputs
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.subjects import Owner
from mnemon_infra.models.embedding import Sparse
from mnemon_infra.models.words import bm25
from mnemon_infra.vectors.port import Collection, IdFilter, VectorStore, VectorsUnavailable

log = structlog.get_logger("search")

LINKS_WAIT: Final = 0.2
"""Maximum wait for the facts that share a name with facts found, in seconds, besides `VECTORS_WAIT`."""

FREQUENT_NAME_SECONDS: Final = 60.0
"""Seconds for which searches leave out a name that more than `MOST_FACTS_PER_NAME` facts of the user have."""

FREQUENT_NAMES: Final = 100_000
"""Maximum number of cached frequent names of all users; each takes up to about 1 KB."""


class FactSearch:
    """Search of a user's facts."""

    def __init__(self, memory: Memory, finder: CandidateFinder, vectors: VectorStore | None) -> None:
        self._memory = memory
        self._finder = finder
        self._vectors = vectors
        self._frequent_names: TTLCache[tuple[Owner, NameSpellings], bool] = TTLCache(
            FREQUENT_NAMES, FREQUENT_NAME_SECONDS
        )

    def expire_caches(self) -> None:
        """Drop the cached frequent names. Call this after a swap of generations."""
        self._frequent_names.clear()

    async def find_hits(self, inputs: ScopeInputs) -> ScopeAnswer:
        """Return the facts that are relevant to the query, and those linked to them by a name.

        Raises:
            VectorsUnavailable, DatabaseUnavailable, nats.errors.Error: the facts cannot be searched now.
        """
        query, tiers = inputs.query, inputs.parts["memories"]
        ids = None if tiers == WHOLE["memories"] else await self._build_tier_filter(inputs, tiers)
        candidates = await self._finder.find_candidates(
            Collection.MEMORIES, query, inputs.breadth.candidates, ids=ids
        )
        found = {str(each.payload["fact_id"]): each for each in candidates[: inputs.breadth.facts]}
        seen = await self._memory.load_facts_by_id(query.owner, tuple(found), inputs.min_seq)
        standing = [fact for fact in seen.value if fact.tier in tiers]
        intent = query.intent
        words = QueryWords(intent.resolved_text, query.statistics.terms.weigh_words(intent.term_weights))
        person = find_query_person(intent.text)
        ranked = rank_facts(standing, found, words, inputs.settings, query.now, person=person)
        seq = seen.seq
        leading = find_leading_facts(intent.text, ranked)
        if leading and (named := await self._find_named_facts(query, leading, ids)):
            linked = {fact.id: fact for fact in seen.value if fact.id in named}
            if missing := tuple(each for each in named if each not in found):
                further = await self._memory.load_facts_by_id(query.owner, missing, inputs.min_seq)
                linked |= {fact.id: fact for fact in further.value}
                seq = min(seq, further.seq)
            links = score_links(leading, linked.values())
            changed = [linked[fact_id] for fact_id in links if linked[fact_id].tier in tiers]
            ranked = merge_rankings(
                ranked, rank_facts(changed, found, words, inputs.settings, query.now, links, person)
            )
        hits = [
            RankedHit(
                fact.id,
                "memories",
                fact.text,
                score,
                fact.saved_at,
                parts if inputs.explain else None,
                fact,
            )
            for fact, score, parts in ranked
        ]
        return mark_doubtful(hits), seq

    async def _find_named_facts(
        self, query: EmbeddedQuery, leading: Sequence[LeadingFact], ids: IdFilter | None
    ) -> list[str]:
        """Return the ids of facts that contain words of a name in a leading fact.

        A name of one word in more than `MOST_FACTS_PER_NAME` facts gives no link, so its facts are left out,
        and searches without `ids` do not look for it again for `FREQUENT_NAME_SECONDS`. With `ids`, fewer
        facts may have the name, so it is looked for each time. If the vector store does not answer in time,
        the result is empty.
        """
        assert self._vectors is not None
        names = sorted(
            {
                name
                for each in leading
                for name in each.names
                if ids is not None or (query.owner, name) not in self._frequent_names
            },
            key=list_spellings,
        )
        if not names:
            return []
        terms = query.statistics.terms
        try:
            async with asyncio.timeout(LINKS_WAIT):
                found = await self._vectors.search(
                    Collection.MEMORIES,
                    query.owner,
                    [_build_name_query(name, terms) for name in names],
                    MOST_FACTS_PER_NAME + 1,
                    ids=ids,
                )
        except (VectorsUnavailable, TimeoutError) as error:
            problem = str(error) or f"the vector store did not answer within {LINKS_WAIT:g} s"
            log.warning("name search failed, leaving out links", tenant=query.owner[0], error=problem)
            return []
        linked: dict[str, None] = {}
        for name, hits in zip(names, found, strict=True):
            if len(hits) <= MOST_FACTS_PER_NAME or len(name.words) > 1:
                linked |= dict.fromkeys(str(hit.payload["fact_id"]) for hit in hits)
            elif ids is None:
                self._frequent_names[query.owner, name] = True
        return list(linked)

    async def _build_tier_filter(self, inputs: ScopeInputs, tiers: ScopeParts) -> IdFilter:
        """Return a filter for the facts of some tiers: ids to include or, if they are fewer, ids to exclude.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the facts cannot be read now.
        """
        owner = inputs.query.owner
        known = (await self._memory.load_facts(owner, inputs.min_seq)).value
        tier_of = {derive_point_id(*owner, "fact", each.id): each.tier for each in known}
        wanted = frozenset(place for place, tier in tier_of.items() if tier in tiers)
        others = tier_of.keys() - wanted
        return IdFilter(wanted) if len(wanted) <= len(others) else IdFilter(frozenset(others), True)


def _build_name_query(name: NameSpellings, terms: TermStatistics) -> Sparse:
    words = bm25.weigh_query(" ".join(list_spellings(name)))
    # Of a name of one word all facts are found, or none counts, so that no rarity has to order them.
    return words._replace(has_rarity=True) if len(name.words) == 1 else terms.weigh_query(words)
