"""Decisions of dedupe on pairs of facts that a person labelled, by language."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from mnemon_bench.quality.calibration import LabelledPair
from mnemon_consumers.dedupe.comparison import Likeness, NearestFact
from mnemon_consumers.dedupe.decide import DecisionEvent, Proposal, decide_proposal
from mnemon_consumers.dedupe.merge import Comparison, IgnoredComparison, merge_facts
from mnemon_consumers.dedupe.user_facts import UserFacts
from mnemon_consumers.extract.answer_parser import parse_answer
from mnemon_contracts.events.fact_comparison import FactComparedV1
from mnemon_contracts.events.memory import (
    FactConfirmedV1,
    FactProposedV1,
    FactSavedV1,
    FactUpdatedV1,
)
from mnemon_contracts.fact_pairs import FactPair
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_infra.models.embedders.wordllama import load_word_similarity
from mnemon_infra.models.embedding import Dense, Embedder
from mnemon_infra.models.language.port import ModelAnswer, Usage

PairOutcome = Literal["same", "update", "undecided", "different", "refused"]
"""Relation of two facts that dedupe has found; `refused` if the policy rejects one of the facts."""

OUTCOMES: Final[tuple[PairOutcome, ...]] = ("same", "update", "undecided", "different", "refused")

DIFFERENT_MERGED: Final = 0.02
"""Maximum share of pairs labelled `different` that are merged."""

PARAPHRASES: Final = {"en": 0.45, "ru": 0.25}
"""Minimum share of pairs labelled `same` that are merged without a language model, by language."""

UPDATES: Final = 0.6
"""Minimum share of pairs labelled `update` in which the newer fact replaces the older one without a language
model.
"""

ANSWERED: Final = 0.9
"""Minimum share of undecided pairs labelled `same` or `update` that are merged after a model has answered."""

OWNER: Final = "bench", "u1"
BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)


class JudgedPair(NamedTuple):
    """A pair, and the decision on it.

    Attributes:
        outcome: relation that dedupe found, before any answer of a language model.
        says_newer: whether the newer text replaced the older text.
        is_merged: whether one fact is left; for an undecided pair, after the answer that its label gives.
        evidence: evidence in the decision; for `refused`, which of the two facts is rejected.
    """

    pair: LabelledPair
    outcome: PairOutcome
    says_newer: bool
    is_merged: bool
    evidence: str | None


async def run(
    pairs: Sequence[LabelledPair], embedder: Embedder, *, report: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Propose both facts of each pair to a separate user, with the default settings.

    For undecided pairs, the label takes the place of a language model's answer.

    Args:
        pairs: pairs that a person labelled; `a` is proposed first.
        embedder: the embedding model.
        report: called with lines about the progress.

    Returns:
        `ratios`: shares of pairs by language, such as `different_merged_en`; `targets`: their limits;
        `languages`: number of pairs by label and outcome, for each language; `faults`: the pairs labelled
        `different` that were merged.

    Raises:
        mnemon_infra.models.embedding.EmbeddingUnavailable: the provider does not answer.
    """
    report(f"deciding on {len(pairs)} pairs")
    texts = [text for pair in pairs for text in (pair.a, pair.b)]
    vectors = await embedder.embed(texts)
    likeness = Likeness(embedder.model, embedder.thresholds, load_word_similarity())
    judged = [
        _judge_pair(pair, likeness, vectors[2 * place], vectors[2 * place + 1])
        for place, pair in enumerate(pairs)
    ]
    languages = {
        language: _build_confusion_table(judged, language)
        for language in sorted({pair.language for pair in pairs})
    }
    figures = [figure for language in languages for figure in _measure_shares(judged, language)]
    return {
        "ratios": {figure.name: figure.share for figure in figures},
        "targets": {
            "at_least": {figure.name: figure.bound for figure in figures if not figure.is_limit},
            "at_most": {figure.name: figure.bound for figure in figures if figure.is_limit},
        },
        "languages": languages,
        "faults": [
            {"a": each.pair.a, "b": each.pair.b, "evidence": each.evidence}
            for each in judged
            if each.pair.label == "different" and each.is_merged
        ],
    }


def _judge_pair(pair: LabelledPair, likeness: Likeness, older: Dense, newer: Dense) -> JudgedPair:
    known, settings = UserFacts(), SettingsV1()
    (first,) = _propose_fact(known, "p1", pair.a, [], likeness, settings)
    if not isinstance(first[1], FactSavedV1):
        return _build_refused_pair(pair, "the older fact is rejected")
    nearest = [NearestFact(first[1].fact_id, float(older @ newer))]
    *_, (_, event) = _propose_fact(known, "p2", pair.b, nearest, likeness, settings)
    match event:
        case FactConfirmedV1() | FactUpdatedV1() if event.decision and event.decision.relation:
            says_newer = isinstance(event, FactUpdatedV1)
            return JudgedPair(
                pair, event.decision.relation, says_newer, is_merged=True, evidence=event.decision.evidence
            )
        case FactSavedV1(decision=decision) if decision.undecided:
            is_merged = _ask_model(known, event, first[1], pair, settings, likeness)
            return JudgedPair(pair, "undecided", False, is_merged, decision.evidence)
        case FactSavedV1(decision=decision):
            return JudgedPair(
                pair, "different", says_newer=False, is_merged=False, evidence=decision.evidence
            )
    return _build_refused_pair(pair, "the newer fact is rejected")


def _build_refused_pair(pair: LabelledPair, evidence: str) -> JudgedPair:
    return JudgedPair(pair, "refused", says_newer=False, is_merged=False, evidence=evidence)


def _propose_fact(
    known: UserFacts,
    proposal_id: str,
    text: str,
    nearest: Sequence[NearestFact],
    likeness: Likeness,
    settings: SettingsV1,
) -> list[DecisionEvent]:
    at = BEGIN + timedelta(minutes=len(known.decided))
    proposal = Proposal(proposal_id, at, FactProposedV1(text=text))
    decided = decide_proposal(proposal, known, nearest, settings, likeness)
    for _, event in decided:
        known.apply(event, str(event.id), at)
    return decided


def _ask_model(
    known: UserFacts,
    newer: FactSavedV1,
    older: FactSavedV1,
    pair: LabelledPair,
    settings: SettingsV1,
    likeness: Likeness,
) -> bool:
    """Return whether the facts of an undecided pair are merged if a model answers with their label."""
    asked = FactPair(
        fact_id=newer.fact_id, version=str(newer.id), other_id=older.fact_id, other_version=str(older.id)
    )
    answer = {"newer": asked.fact_id, "older": asked.other_id, "relation": pair.label}
    said = json.dumps({"facts": [], "pairs": [answer]})
    relations = parse_answer(ModelAnswer(said, Usage()), (), (), (asked,)).relations
    event = FactComparedV1(**asked.model_dump(), relation=relations.get(asked))
    comparison = Comparison("compared", BEGIN + timedelta(hours=1), event)
    wording = {str(newer.id): newer.fact_id, str(older.id): older.fact_id}
    merged = merge_facts(OWNER, comparison, known, wording, settings.dedupe, likeness.words)
    return not isinstance(merged, IgnoredComparison)


def _build_confusion_table(judged: Sequence[JudgedPair], language: str) -> dict[str, dict[str, int]]:
    """Return the number of a language's pairs by label, then by outcome."""
    counts = Counter((each.pair.label, each.outcome) for each in judged if each.pair.language == language)
    return {
        label: {outcome: counts[label, outcome] for outcome in OUTCOMES}
        for label in ("same", "update", "different")
    }


class MeasuredShare(NamedTuple):
    """A share and its target: at most `bound` if `is_limit` is true, else at least `bound`."""

    name: str
    share: float
    bound: float
    is_limit: bool = False


def _measure_shares(judged: Sequence[JudgedPair], language: str) -> Iterator[MeasuredShare]:
    of = [each for each in judged if each.pair.language == language]
    different = [each for each in of if each.pair.label == "different"]
    same = [each for each in of if each.pair.label == "same"]
    updates = [each for each in of if each.pair.label == "update"]
    asked = [each for each in (*same, *updates) if each.outcome == "undecided"]
    is_decided = [each.outcome in ("same", "update") for each in same]
    yield MeasuredShare(
        f"different_merged_{language}",
        _compute_share([each.is_merged for each in different]),
        DIFFERENT_MERGED,
        True,
    )
    if same:
        yield MeasuredShare(
            f"paraphrases_recognised_{language}", _compute_share(is_decided), PARAPHRASES.get(language, 0.0)
        )
    if updates:
        yield MeasuredShare(
            f"updates_recognised_{language}", _compute_share([each.says_newer for each in updates]), UPDATES
        )
    if asked:
        yield MeasuredShare(
            f"undecided_answered_{language}", _compute_share([each.is_merged for each in asked]), ANSWERED
        )


def _compute_share(outcomes: Sequence[bool]) -> float:
    return round(sum(outcomes) / len(outcomes), 4)
