"""The facts that are nearest in meaning to the proposals of one turn of a user.

The turn normally queries the vector store once for all its proposals, and writes the points of its decisions
once, at its end. In between, the store lacks the decisions of the turn, so this module also compares
proposals with the facts that the turn has written.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from mnemon_consumers.dedupe.comparison import NearestFact
from mnemon_consumers.dedupe.decide import DecisionEvent
from mnemon_consumers.dedupe.state.user import UserState
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import FactEvictedV1, FactForgottenV1, FactSavedV1, FactUpdatedV1
from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.subjects import Owner
from mnemon_infra.models.embedding import Dense
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.vector_index import VectorIndex, build_fact_item, build_points

NEAREST: Final = 10
"""Maximum number of hits to compare per text; some of them may belong to facts that have changed or ended."""


class Neighbours:
    """Neighbours of the proposals of one turn, with the points of the facts that the turn wrote.

    Its coroutines may raise `EmbeddingUnavailable` and `VectorsUnavailable`.
    """

    def __init__(self, vector_index: VectorIndex, owner: Owner, known: UserState) -> None:
        self._vector_index = vector_index
        self._owner = owner
        self._known = known
        self._was_findable = known.findable
        self._hits: dict[str, list[NearestFact]] = {}
        self._former: dict[str, str | None] = {}
        """Former texts, before the turn, of the facts that the turn wrote; None for a new fact."""
        self._ended: set[str] = set()

    async def look_up_texts(self, texts: Sequence[str]) -> None:
        """Look up the facts nearest to each text, for `find_nearest`, and embed all new texts in one request.

        The embedder gets each text once. Vectors of texts that are not among `texts` are dropped. Without an
        embedder, the method does nothing.
        """
        model, meanings = self._vector_index.embedder, self._known.meanings
        if model is None:
            return
        self._known.meanings = {text: meanings[text] for text in texts if text in meanings}
        if absent := list(dict.fromkeys(text for text in texts if text not in meanings)):
            self._known.meanings |= zip(absent, await model.embed(absent), strict=True)
        await self._search_texts(self._known.meanings)

    async def find_nearest(self, text: str, at: datetime) -> list[NearestFact]:
        """Return the facts near a text in meaning that are live at the time `at`; none without an embedder.

        The facts are those of the vector store's `NEAREST` hits that the turn has not changed, and those that
        the turn wrote with a text whose vector is known.
        """
        if self._vector_index.embedder is None:
            return []
        meanings = self._known.meanings
        if text not in meanings:
            # The turn looks up no text that repeats a fact. Decisions since then may have ended that fact.
            (meanings[text],) = await self._vector_index.embedder.embed([text])
            await self._search_texts({text: meanings[text]})
        facts = self._known.facts
        found = [each for each in self._hits.get(text, ()) if self._is_unchanged(each.fact_id)]
        met = {each.fact_id for each in found}
        for fact_id in self._former:
            written = facts.facts.get(fact_id) if fact_id not in met else None
            if written is not None and (vector := meanings.get(written.fact.text)) is not None:
                found.append(NearestFact(fact_id, float(meanings[text] @ vector)))
        return [each for each in found if facts.find_live(each.fact_id, at)]

    def record_decision(self, decided: DecisionEvent) -> None:
        """Record a decision just before it is applied to the user's facts."""
        match decided[1]:
            case FactSavedV1() | FactUpdatedV1() | FactMergedV1() as event:
                known = self._known.facts.facts.get(event.fact_id)
                self._former.setdefault(event.fact_id, known.fact.text if known else None)
            case FactEvictedV1() | FactForgottenV1() as event:
                self._ended.add(event.fact_id)

    async def write_points(self) -> None:
        """Write the points of the facts that the turn wrote, and delete those of the facts that it ended."""
        facts, versions = self._known.facts.facts, self._known.versions
        written = [
            build_fact_item(self._owner, each, versions[each], facts[each].fact.text)
            for each in self._former
            if each in facts
        ]
        if written:
            new = await build_points(self._vector_index, written, self._known.meanings)
            await self._vector_index.vectors.upsert(Collection.MEMORIES, new)
        if self._ended:
            gone = [derive_point_id(*self._owner, "fact", each) for each in self._ended]
            await self._vector_index.vectors.delete(Collection.MEMORIES, self._owner, gone)
        self._known.findable = self._was_findable

    def _is_unchanged(self, fact_id: str) -> bool:
        """Return whether a fact still has the text that it had before the turn."""
        known = self._known.facts.facts.get(fact_id)
        return known is not None and self._former.get(fact_id, known.fact.text) == known.fact.text

    async def _search_texts(self, meanings: dict[str, Dense]) -> None:
        if not self._known.versions or not meanings:
            return
        if not self._was_findable:
            await self._write_missing_points()
        vectors = list(meanings.values())
        found = await self._vector_index.vectors.search(Collection.MEMORIES, self._owner, vectors, NEAREST)
        for text, hits in zip(meanings, found, strict=True):
            self._hits[text] = [
                NearestFact(fact_id, hit.score)
                for hit in hits
                if self._known.versions.get(fact_id := str(hit.payload["fact_id"])) == hit.payload["event_id"]
            ]

    async def _write_missing_points(self) -> None:
        """Write missing and outdated points of facts.

        The worker that decided a fact may have been killed before it wrote the point.
        """
        facts, versions = self._known.facts.facts, self._known.versions
        found: dict[str, object] = {}
        async for page in self._vector_index.vectors.scroll(Collection.MEMORIES, self._owner):
            found |= {str(each.payload["fact_id"]): each.payload["event_id"] for each in page}
        absent = [
            build_fact_item(self._owner, each.id, versions[each.id], each.fact.text)
            for each in facts.values()
            if found.get(each.id) != versions[each.id]
        ]
        await self._vector_index.vectors.upsert(
            Collection.MEMORIES, await build_points(self._vector_index, absent)
        )
        self._known.findable = self._was_findable = True
