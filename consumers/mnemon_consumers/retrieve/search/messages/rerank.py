"""Reranking of messages: a weighted sum of features, with fitted weights. No I/O, no clock."""

import tomllib
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from operator import mul
from typing import Final, NamedTuple

from mnemon_consumers.retrieve.search.duplicates import describe_source, list_distinct_items
from mnemon_consumers.retrieve.search.fusion import FusedCandidate
from mnemon_consumers.retrieve.search.messages.message_features import MessageFeatures, extract_features
from mnemon_consumers.retrieve.search.query.intent import QueryIntent
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_infra.database.messages.lookup import Surroundings, VisibleMessage

WEIGHTS_FILE: Final = "weights.toml"
"""Weights that `just fit-ranking` has fitted, beside this module."""


class ScoredMessage(NamedTuple):
    """A message with its features and their weighted sum."""

    score: float
    message: VisibleMessage
    features: MessageFeatures


def score_messages(
    candidates: Mapping[str, FusedCandidate],
    around: Surroundings,
    intent: QueryIntent,
    statistics: TermStatistics,
    matches: Mapping[int, float],
) -> list[ScoredMessage]:
    """Return the found messages and their neighbours with scores, best first; of equals, the newer first.

    The difference between two scores is the logarithm of how much more likely the better message is to be
    the answer: the weights maximise the likelihood of a softmax over all messages.

    Args:
        candidates: the candidates that the search found, by event id.
        around: the messages of `candidates` that may be shown, and their neighbours.
        intent: the query.
        statistics: rarity of the tenant's words.
        matches: how well the tokens of each message match the query's, 0 to 1, by log position.
    """
    weights = load_weights()
    scored = [
        ScoredMessage(sum(map(mul, weights, features)), message, features)
        for message, features in extract_features(candidates, around, intent, statistics, matches)
    ]
    scored.sort(key=lambda each: (-each.score, -each.message.seq))
    return scored


def list_best_messages(scored: Sequence[ScoredMessage], limit: int) -> list[ScoredMessage]:
    """Return up to `limit` of the best messages; near-duplicates of one speaker only once."""
    return list_distinct_items(scored, _get_speech, limit)


def explain_score(features: MessageFeatures) -> dict[str, float]:
    """Return the components of a message's score, by feature, without zeros. They add up to the score."""
    return {
        name: weight * value
        for name, weight, value in zip(MessageFeatures._fields, load_weights(), features, strict=True)
        if value
    }


def _get_speech(scored: ScoredMessage) -> tuple[Hashable, str]:
    return describe_source(scored.message), scored.message.content


@cache
def load_weights() -> MessageFeatures:
    """Return the fitted weight of each feature, from `WEIGHTS_FILE`."""
    document = tomllib.loads((files(__package__) / WEIGHTS_FILE).read_text(encoding="utf-8"))
    return MessageFeatures(**document["weights"])
