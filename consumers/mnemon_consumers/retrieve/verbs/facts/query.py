"""Query for a fact: finds the fact that a query clearly means, or the facts that the query may mean."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NoReturn

from mnemon_consumers.domain.alignment.lexicon import load_lexicon
from mnemon_consumers.domain.alignment.query.fact_fit import FactFit, choose_fact
from mnemon_consumers.retrieve.decide import select_unexpired_facts
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.service import Search
from mnemon_consumers.retrieve.verbs.request_context import get_current_time, report_unconfirmed_change
from mnemon_contracts.subjects import Owner
from mnemon_contracts.verbs.tools import FactCandidate
from mnemon_infra.broker.service import Refusal
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.settings.store import LiveSettings

CANDIDATES: Final = 5
"""Maximum number of facts that a reply offers if a query does not clearly name one."""


@dataclass(frozen=True, slots=True)
class QueriedFacts:
    """The facts that a query may mean.

    Attributes:
        query: the query, which should name one fact.
        named: the one fact that the query clearly means; None if it means no fact or several.
        ranked: the facts that have a content word of the query, or exactly its words, best first.
        facts: the facts of the user that have not expired, by id.
        seq: the log position that the facts reflect.
    """

    query: str
    named: FactRecord | None
    ranked: Sequence[FactFit]
    facts: Mapping[str, FactRecord]
    seq: int


def refuse_unknown_fact(fact_id: str) -> NoReturn:
    """Refuse a request that names a fact by an id that no fact has.

    Raises:
        Refusal: always.
    """
    raise Refusal("not_found", f"there is no fact {fact_id!r}; list the facts with `read`")


def report_unconfirmed_query(change: str, fact: FactRecord) -> AbstractContextManager[None]:
    """Return `report_unconfirmed_change` for a fact that a query named.

    `change` is the noun for the change: `removal` or `change`.
    """
    return report_unconfirmed_change(
        f"the {change} of the fact {fact.id!r}",
        "repeat the request with this id, because the query may name another fact now",
    )


class FactQuery:
    """Resolves a query to a fact, for verbs that change or remove the fact."""

    def __init__(self, memory: Memory, search: Search, settings: LiveSettings) -> None:
        self._memory = memory
        self._search = search
        self._settings = settings

    @staticmethod
    async def load_lexicon() -> None:
        """Load the lexicon that `choose_fact` needs, in a thread; the first load takes about a second."""
        await asyncio.to_thread(load_lexicon)

    async def choose_fact(self, owner: Owner, query: str, min_seq: int) -> QueriedFacts:
        """Choose the fact that a query names. The user's lock must be held, so that no fact changes.

        Raises:
            DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer.
        """
        seen = await self._memory.load_facts(owner, min_seq)
        facts = {fact.id: fact for fact in select_unexpired_facts(seen.value, get_current_time())}
        # Many or long facts take seconds, so a thread lets the process answer other requests meanwhile.
        texts = [(fact.id, fact.text) for fact in facts.values()]
        choice = await asyncio.to_thread(choose_fact, query, texts)
        named = facts[choice.named] if choice.named is not None else None
        return QueriedFacts(query, named, choice.ranked, facts, seen.seq)

    async def list_candidates(self, owner: Owner, queried: QueriedFacts) -> tuple[FactCandidate, ...]:
        """Return up to `CANDIDATES` facts that a query may mean, ranked by their words and by a search.

        Raises:
            Refusal: no fact fits the query; or no fact has a word of the query, and facts cannot be searched
                now.
        """
        # The words of the query decide, so a reranker is not asked.
        settings = self._settings.get_settings(owner[0]).retrieval.model_copy(update={"reranker": None})
        query = await self._search.embed_query(owner, queried.query, get_current_time())
        found = await self._search.find_hits(query, ("memories",), CANDIDATES, settings.threshold, settings)
        if not queried.ranked and "memories" in found.degraded:
            raise Refusal(
                "unavailable", "facts cannot be searched now; name the fact by `id`", retryable=True
            )
        candidates = _rank_candidates(queried, {hit.id: hit.score for hit in found.hits})
        if not candidates:
            raise Refusal(
                "not_found", "no fact fits the query; find the fact with `search`, and name it by `id`"
            )
        return tuple(candidates)


def _rank_candidates(queried: QueriedFacts, scores: Mapping[str, float]) -> Sequence[FactCandidate]:
    fits = {each.id: each.fit for each in queried.ranked}
    known = [each for each in dict.fromkeys((*fits, *scores)) if each in queried.facts]
    ranked = sorted(known, key=lambda each: (-_score_fact(each, fits, scores), each))
    return [
        FactCandidate(id=each, text=queried.facts[each].text, score=round(_score_fact(each, fits, scores), 3))
        for each in ranked[:CANDIDATES]
    ]


def _score_fact(fact_id: str, fits: Mapping[str, float], scores: Mapping[str, float]) -> float:
    return (fits.get(fact_id, 0.0) + scores.get(fact_id, 0.0)) / 2
