"""Fit and cross-validation of the ranking's weights."""

import numpy as np

from mnemon_bench.quality.ranking_fit import LabelledCandidates, cross_validate
from mnemon_consumers.retrieve.search.messages.message_features import MessageFeatures

CANDIDATES = 20


def label_question(data_set: str, user: str) -> LabelledCandidates:
    """Return a question whose first candidate is the answer and the only candidate with a feature."""
    features = np.zeros((CANDIDATES, len(MessageFeatures._fields)))
    features[0, 0] = 1.0
    turns = [f"D1:{place}" for place in range(CANDIDATES)]
    return LabelledCandidates(
        data_set, user, features, turns, np.arange(CANDIDATES) == 0, evidence=frozenset(turns[:1])
    )


def test_conversations_with_one_name_in_two_data_sets_are_left_out_one_at_a_time() -> None:
    """Without a question to fit them to, the weights would rank the newest candidates first."""
    recalls = cross_validate([label_question("locomo", "1"), label_question("beam", "1")])
    assert [recalls[name]["recall@10"] for name in ("locomo", "beam")] == [1.0, 1.0]
