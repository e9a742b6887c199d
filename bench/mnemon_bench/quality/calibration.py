"""Calibration of an embedder: precision and recall of its similarities on pairs that a person labelled."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, StringConstraints

from mnemon_bench.quality.labelled_lines import read_lines
from mnemon_consumers.domain.alignment.relation import relate_facts
from mnemon_infra.models.embedders.wordllama import load_word_similarity
from mnemon_infra.models.embedding import Embedder

PRECISION: Final = 0.95
"""Required precision: replacing an unrelated fact is worse than keeping one fact twice."""

PAIRS: Final = Path(__file__).with_name("datasets") / "pairs.jsonl"
"""The labelled pairs that mnemon ships."""

THRESHOLDS: Final = tuple(hundredths / 100 for hundredths in range(30, 100))

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class LabelledPair(BaseModel):
    """Two facts with a label: `same` if both say the same, `update` if `b` updates `a`, or `different`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    a: Words
    b: Words
    label: Literal["same", "update", "different"]
    language: Words


class InvalidPairs(ValueError):
    """A file is not a list of labelled pairs; the message names the file, and the line if one is invalid."""


class ThresholdPoint(NamedTuple):
    """Precision, recall and F1 above a threshold."""

    threshold: float
    precision: float
    recall: float
    f1: float


def read_pairs(path: Path) -> list[LabelledPair]:
    """Read the pairs of a file, one JSON object per line.

    Raises:
        InvalidPairs: the file cannot be read, has no pairs, or has a line that is not a pair; or a
            language lacks pairs that are labelled `different` or pairs with another label.
    """
    pairs = read_lines(path, LabelledPair, InvalidPairs)
    if not pairs:
        raise InvalidPairs(f"{path} has no pairs; write one JSON object per line")
    if missing := _find_missing_label(pairs, {pair.language for pair in pairs}):
        raise InvalidPairs(f"{path}: {missing}; add some")
    return pairs


def _find_missing_label(pairs: Sequence[LabelledPair], languages: Collection[str]) -> str | None:
    """Tell which language lacks pairs of a label that a threshold needs; None if none does."""
    for language in sorted(languages):
        labels = {pair.label for pair in pairs if pair.language == language}
        if labels <= {"different"}:
            return f"{language} lacks pairs labelled `same` or `update`"
        if "different" not in labels:
            return f"{language} lacks pairs labelled `different`"
    return None


async def calibrate_embedder(model: Embedder, pairs: Sequence[LabelledPair]) -> dict[str, Any]:
    """Measure precision and recall of an embedder on the pairs that alignment does not decide.

    Returns:
        `model`: the embedder's model. `pairs`: number of these pairs. `precision`: `PRECISION`,
        the required precision. `languages`: for each language, and for `all`, the number of `pairs` and the
        `curve`: precision and recall by threshold, for the pairs labelled `same` or `update`. `best_f1` is
        the point of the curve with the highest F1, or None if no pair exceeds a threshold. `precise` is the
        point at the lowest threshold from which on the precision is at least `PRECISION`, or None.
        `recommended`: `update` and `duplicate`, for `dedupe.update_threshold` and
        `dedupe.duplicate_threshold`, or None if a language has no `precise` point. Each has the required
        precision in every language. For `duplicate`, only the label `same` counts as positive; in a language
        without such a threshold, no pair exceeds it.

    Raises:
        InvalidPairs: in a language, alignment decides all pairs of a label that a threshold needs.
        mnemon_infra.models.embedding.EmbeddingUnavailable: the provider does not answer.
    """
    words = load_word_similarity()
    languages = {pair.language for pair in pairs}
    pairs = [pair for pair in pairs if relate_facts(pair.a, pair.b, words).is_open]
    if missing := _find_missing_label(pairs, languages):
        raise InvalidPairs(
            f"without the pairs that the rules of `dedupe` decide, {missing}; add pairs that the rules leave "
            "open, such as facts in other words"
        )
    a, b = await model.embed([pair.a for pair in pairs]), await model.embed([pair.b for pair in pairs])
    similarities = np.einsum("ij,ij->i", a, b).astype(np.float64)
    return {
        "model": model.model,
        "pairs": len(pairs),
        "precision": PRECISION,
        "recommended": _recommend_thresholds(similarities, pairs),
        "languages": {
            language: _measure_language(similarities[rows], [pairs[row] for row in rows])
            for language, rows in _group_by_language(pairs)
        },
    }


def _group_by_language(pairs: Sequence[LabelledPair]) -> Iterator[tuple[str, list[int]]]:
    yield "all", list(range(len(pairs)))
    for language in sorted({pair.language for pair in pairs}):
        yield language, [row for row, pair in enumerate(pairs) if pair.language == language]


def _measure_language(similarities: NDArray[np.float64], pairs: Sequence[LabelledPair]) -> dict[str, Any]:
    curve = _compute_curve(similarities, np.array([pair.label != "different" for pair in pairs]))
    best = max(curve, key=lambda point: point.f1, default=None)
    precise = _find_precise(curve)
    return {
        "pairs": len(pairs),
        "best_f1": best._asdict() if best else None,
        "precise": precise._asdict() if precise else None,
        "curve": [point._asdict() for point in curve],
    }


def _compute_curve(similarities: NDArray[np.float64], alike: NDArray[np.bool_]) -> list[ThresholdPoint]:
    """Return one point per threshold, up to the highest threshold that any pair exceeds.

    Args:
        similarities: similarity of the two facts of each pair.
        alike: for each pair, whether its label counts as positive.
    """
    points: list[ThresholdPoint] = []
    for threshold in THRESHOLDS:
        found = similarities > threshold
        if not found.any():
            break
        hits = int((found & alike).sum())
        points.append(
            ThresholdPoint(
                threshold,
                precision=round(hits / int(found.sum()), 3),
                recall=round(hits / int(alike.sum()), 3),
                f1=round(2 * hits / int(found.sum() + alike.sum()), 3),
            )
        )
    return points


def _find_precise(curve: Sequence[ThresholdPoint]) -> ThresholdPoint | None:
    """Return the point at the lowest threshold from which on the precision is at least `PRECISION`.

    None if there is no such point.
    """
    lowest = None
    for point in reversed(curve):
        if point.precision < PRECISION:
            break
        lowest = point
    return lowest


def _recommend_thresholds(
    similarities: NDArray[np.float64], pairs: Sequence[LabelledPair]
) -> dict[str, float] | None:
    """Return the thresholds `update` and `duplicate`, each the highest that a language needs.

    `duplicate` is not below `update`. Return None if a language has no precise threshold for `update`.
    """
    update, duplicate = 0.0, 0.0
    for _, rows in _group_by_language(pairs):
        some = similarities[rows]
        labels = np.array([pairs[row].label for row in rows])
        precise = _find_precise(_compute_curve(some, labels != "different"))
        if precise is None:
            return None
        update = max(update, precise.threshold)
        duplicate = max(duplicate, _find_duplicate_threshold(some, labels == "same"))
    return {"update": update, "duplicate": max(update, duplicate)}


def _find_duplicate_threshold(similarities: NDArray[np.float64], alike: NDArray[np.bool_]) -> float:
    """Return the lowest precise threshold; without one, a threshold that no pair exceeds."""
    point = _find_precise(_compute_curve(similarities, alike)) if alike.any() else None
    return point.threshold if point else min(1.0, float(np.ceil(similarities.max() * 100) / 100))
