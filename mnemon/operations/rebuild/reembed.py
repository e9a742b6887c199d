"""Preview of another embedding model: the pairs of facts that `dedupe` would judge differently."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemon_contracts.settings.groups import Dedupe
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.facts.fact_repository import list_fact_owners, load_facts
from mnemon_infra.rebuild.generations import Site
from mnemon_infra.settings.store import read_settings
from mnemon_infra.vectors.port import Collection, VectorStore
from mnemon_infra.vectors.vector_index import VectorIndex

MAX_FIRST: Final = 10
"""Maximum number of pairs that a preview names; further pairs are only counted."""

PairVerdict = Literal["apart", "rewritten", "the same"]
"""Judgement of `dedupe` on two facts with a given similarity.

- `apart`: the facts are different.
- `rewritten`: one fact updates the other.
- `the same`: the facts are duplicates.
"""

_VERDICTS: Final[tuple[PairVerdict, ...]] = ("apart", "rewritten", "the same")


class AffectedPair(NamedTuple):
    """Two facts of a user, by their texts, that `dedupe` would judge differently with the new model."""

    tenant: str
    user_id: str
    one: str
    other: str
    similarity: float
    new_similarity: float
    verdict: PairVerdict
    new_verdict: PairVerdict


@dataclass(slots=True)
class ReembedPreview:
    """Effects of a new embedding model on points, and on the decisions of `dedupe`.

    Attributes:
        model, new_model: provider and name, with the dimension.
        points: number of points that the new model makes.
        facts, pairs: number of facts and of compared pairs; pairs are within one user.
        changes: number of pairs with another verdict, by old and new verdict.
        first: the first of these pairs, `MAX_FIRST` at most.
    """

    model: str
    new_model: str
    points: int
    facts: int = 0
    pairs: int = 0
    changes: Counter[tuple[PairVerdict, PairVerdict]] = field(default_factory=Counter)
    first: list[AffectedPair] = field(default_factory=list)


class _ModelSide(NamedTuple):
    vectors: VectorIndex
    dedupe: Dedupe

    def compute_verdicts(self, similarities: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return for each similarity 0 for the verdict `apart`, 1 for `rewritten`, 2 for `the same`.

        Without an embedding model, all verdicts are `apart`.
        """
        model = self.vectors.embedder
        usual = (model.thresholds.update, model.thresholds.duplicate) if model else (None, None)
        own = self.dedupe.update_threshold, self.dedupe.duplicate_threshold
        update, duplicate = (
            chosen if chosen is not None else of_model for chosen, of_model in zip(own, usual, strict=True)
        )
        found = np.zeros(similarities.shape, dtype=np.int64)
        if model is None:
            return found
        for place, bound in (1, update), (2, duplicate):
            if bound is not None:
                found[similarities > bound] = place
        return found


async def preview_verdicts(
    site: Site, live: VectorIndex, rebuilt: VectorIndex, preview: ReembedPreview
) -> None:
    """Compare the live facts of every user with each other, by the vectors of both models.

    The preview is updated in place.

    Raises:
        SettingsNotProvisioned: the bucket of settings does not exist.
        DatabaseUnavailable, VectorsUnavailable, nats.errors.Error: a server does not answer.
    """
    settings: dict[str, Dedupe] = {}
    after: Owner | None = None
    while owners := await site.database.run_query(list_fact_owners(after)):
        for owner in owners:
            if owner[0] not in settings:
                settings[owner[0]] = (await read_settings(site.connection, owner[0])).dedupe
            dedupe = settings[owner[0]]
            await _compare_facts(site, owner, _ModelSide(live, dedupe), _ModelSide(rebuilt, dedupe), preview)
        after = owners[-1]


async def _compare_facts(
    site: Site, owner: Owner, live: _ModelSide, rebuilt: _ModelSide, preview: ReembedPreview
) -> None:
    (facts,) = await site.database.run_query(load_facts([owner]))
    meanings = [await _load_vectors(side.vectors.vectors, owner) for side in (live, rebuilt)]
    common = [each for each in facts if all(each.id in known for known in meanings)]
    preview.facts += len(facts)
    if len(common) < 2:
        return
    vectors = [np.stack([known[each.id] for each in common]) for known in meanings]
    near, new_near = (each @ each.T for each in vectors)
    one, other = np.triu_indices(len(common), 1)
    near, new_near = near[one, other], new_near[one, other]
    verdicts, new_verdicts = live.compute_verdicts(near), rebuilt.compute_verdicts(new_near)
    preview.pairs += len(one)
    for pair in np.flatnonzero(verdicts != new_verdicts):
        verdict, new_verdict = _VERDICTS[verdicts[pair]], _VERDICTS[new_verdicts[pair]]
        preview.changes[verdict, new_verdict] += 1
        if len(preview.first) < MAX_FIRST:
            texts = common[one[pair]].text, common[other[pair]].text
            similarities = round(float(near[pair]), 3), round(float(new_near[pair]), 3)
            preview.first.append(AffectedPair(*owner, *texts, *similarities, verdict, new_verdict))


async def _load_vectors(vectors: VectorStore, owner: Owner) -> dict[str, NDArray[np.float32]]:
    """Return the vectors of a user's facts by fact id; a point without a vector gets a single zero."""
    found: dict[str, NDArray[np.float32]] = {}
    begin = None
    while True:
        page = await vectors.read_page(Collection.MEMORIES, begin, owner=owner)
        for point in page.points:
            dense = np.zeros(1, dtype=np.float32) if point.dense is None else point.dense
            found[str(point.payload["fact_id"])] = dense
        begin = page.following
        if begin is None:
            return found
