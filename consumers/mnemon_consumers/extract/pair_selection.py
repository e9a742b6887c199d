"""Selection of undecided pairs that a request for facts also asks about. No I/O, no clock.

A request asks about a pair while both facts are live. A rewrite of a fact by the verb `update` or by another
proposal ends its earlier pairs; the decision of dedupe on a proposal names new pairs. After a merge, the
other pairs of both facts are compared again, as pairs of the kept fact, because the merge may have brought
the facts closer.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from mnemon_contracts.fact_pairs import FactPair
from mnemon_infra.database.facts.fact_repository import FactRecord
from mnemon_infra.database.facts.undecided_pairs import PairRecord

MOST_ASKED: Final = 3
"""Number of unanswered requests about a pair after which no further request asks about it."""


def select_open_pairs(record: PairRecord, facts: Mapping[str, FactRecord]) -> list[FactPair]:
    """Return the pairs that a model may be asked about, oldest first.

    Args:
        record: the user's pairs in the log.
        facts: the user's live facts, by id.
    """
    unanswered = Counter(record.unanswered)
    pairs: dict[frozenset[str], FactPair] = {}
    for opened in record.opened:
        newer = facts.get(_follow_merges(opened.fact_id, record.merged))
        if newer is None or (newer.event_id != opened.version and newer.event_id not in record.merges):
            continue
        for other_id in opened.undecided:
            other = facts.get(_follow_merges(other_id, record.merged))
            if other is None or other.id == newer.id:
                continue
            if other.seq > opened.seq and other.event_id not in record.merges:
                continue
            pairs.setdefault(frozenset((newer.id, other.id)), _order_pair(newer, other, record.merges))
    done = record.answered | record.asked
    return [pair for pair in pairs.values() if pair not in done and unanswered[pair] < MOST_ASKED]


def _order_pair(one: FactRecord, other: FactRecord, merges: Collection[str]) -> FactPair:
    """Order two facts as a pair, the fact with the newer words first.

    The facts are ordered by log position. If a merge wrote one of them, they are ordered by `saved_at`,
    because a merge has a later position than the words that it took over. `merges` has the event ids of
    merges.
    """
    if one.event_id in merges or other.event_id in merges:
        older, newer = sorted((one, other), key=lambda fact: (fact.saved_at, fact.id))
    else:
        older, newer = sorted((one, other), key=lambda fact: fact.seq)
    return FactPair(fact_id=newer.id, version=newer.event_id, other_id=older.id, other_version=older.event_id)


def _follow_merges(fact_id: str, merged: Mapping[str, str]) -> str:
    """Return the id of the last fact in a fact's chain of merges, or the fact's own id without a merge."""
    passed = {fact_id}
    while (into := merged.get(fact_id)) is not None and into not in passed:
        passed.add(into)
        fact_id = into
    return fact_id
