"""Merge of facts that a language model has compared. No I/O, no clock, no randomness.

A comparison holds for the words that the model was shown. A fact whose words have changed since, by the verb
`update` or by another proposal, is not merged. If an earlier merge moved the words into another fact, that
fact is merged instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from mnemon_consumers.dedupe.decide import DecisionEvent
from mnemon_consumers.dedupe.user_facts import KeptFact, UserFacts, join_lineages
from mnemon_consumers.domain.alignment.matching import WordSimilarity
from mnemon_consumers.domain.alignment.parser import parse_fact
from mnemon_consumers.domain.alignment.relation import relate_facts
from mnemon_consumers.domain.alignment.term import TermKind
from mnemon_contracts.events.fact_comparison import FactComparedV1, FactMergedV1
from mnemon_contracts.events.memory import Fact, FactForgottenV1, Lineage
from mnemon_contracts.identity import derive_id
from mnemon_contracts.settings.groups import Dedupe
from mnemon_contracts.subjects import Owner


@dataclass(frozen=True, slots=True)
class Comparison:
    """A model's comparison of two facts, with the id of its event, its time in the log, and its trace."""

    id: str
    at: datetime
    event: FactComparedV1
    traceparent: str | None = field(default=None, compare=False)


class IgnoredComparison(NamedTuple):
    """A comparison that changes nothing, with the reason."""

    reason: str


def merge_facts(
    owner: Owner,
    comparison: Comparison,
    known: UserFacts,
    wording: Mapping[str, str],
    dedupe: Dedupe,
    words: WordSimilarity | None = None,
) -> list[DecisionEvent] | IgnoredComparison:
    """Merge two facts that a model has compared, or return the reason why they stay separate.

    Args:
        owner: the user whose facts they are.
        comparison: the model's comparison of the two facts.
        known: the user's facts.
        wording: maps the id of each event to the id of the fact that has the words of that event now.
        dedupe: the tenant's settings.
        words: function that returns the cosine similarity of two English words; None without static vectors.

    Returns:
        The events, in the order in which they are to be published; or the reason why no event follows.
    """
    event, at = comparison.event, comparison.at
    if event.relation not in ("same", "update"):
        return IgnoredComparison("the facts are different" if event.relation else "the model gave no answer")
    merged_id = derive_id(*owner, "merge", comparison.id)
    newer = known.find_live(wording.get(event.version, ""), at)
    older = known.find_live(wording.get(event.other_version, ""), at)
    if (unfinished := known.find_live(event.fact_id, at)) and merged_id in wording:
        return [_build_end_event(owner, comparison, unfinished)]
    if newer is None or older is None:
        return IgnoredComparison("a fact has changed or ended since the comparison")
    if newer.id == older.id:
        return IgnoredComparison("the facts are merged already")
    if contradicts_relation(older.fact.text, newer.fact.text, event.relation, words):
        return IgnoredComparison("the words of the facts contradict the comparison")
    merged = FactMergedV1(
        id=merged_id,
        fact_id=older.id,
        merged_id=newer.id,
        relation=event.relation,
        fact=_merge_content(older.fact, newer.fact, event.relation, dedupe),
        former=older.fact,
        compared_id=comparison.id,
        lineage=_merge_lineage(older, newer, event.lineage),
    )
    return [("fact.merged", merged), _build_end_event(owner, comparison, newer)]


def contradicts_relation(
    older: str, newer: str, relation: Literal["same", "update"], words: WordSimilarity | None
) -> bool:
    """Return whether the words of two texts contradict the relation that a model gave them."""
    verdict = relate_facts(older, newer, words)
    if verdict.is_contradicted or relation == "update":
        return verdict.is_contradicted
    before, after = _find_numbers(older), _find_numbers(newer)
    return bool(before - after and after - before)


def _find_numbers(text: str) -> set[str]:
    return {key for term in parse_fact(text).terms if term.kind is TermKind.NUMBER for key in term.keys}


def _merge_content(older: Fact, newer: Fact, relation: Literal["same", "update"], dedupe: Dedupe) -> Fact:
    """Merge two facts into one.

    An update keeps the end of the newer fact. A duplicate keeps the later of both ends, or no end if one of
    the facts has none, so that in doubt the fact is kept longer.
    """
    importance = max(older.importance, newer.importance)
    if relation == "update":
        return newer.model_copy(update={"importance": importance})
    dates = older.expires_at, newer.expires_at
    worded = older if dedupe.on_duplicate == "confirm" else newer
    return older.model_copy(
        update={
            "text": worded.text,
            "names": worded.names,
            "importance": importance,
            "expires_at": None if None in dates else max(date for date in dates if date),
        }
    )


def _merge_lineage(older: KeptFact, newer: KeptFact, model: Lineage) -> Lineage:
    learned = join_lineages(older.lineage, newer.lineage)
    return model.model_copy(update={"sources": learned.sources, "conversation": learned.conversation})


def _build_end_event(owner: Owner, comparison: Comparison, newer: KeptFact) -> DecisionEvent:
    ended_id = derive_id(*owner, "merge", comparison.id, newer.id)
    return "fact.forgotten", FactForgottenV1(id=ended_id, fact_id=newer.id, reason="superseded")
