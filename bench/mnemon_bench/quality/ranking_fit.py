"""Fit of the ranking's weights on conversations with questions; `just fit-ranking` runs it.

    uv run python -m mnemon_bench.quality.ranking_fit DATA [DATA ...] [--write]

Each DATA is a folder of conversations in the form of LoCoMo. The candidates are computed in this process,
with the same vectors and term weights as in the engine, so that a fit takes seconds and needs no server. The
weights maximise the likelihood of the labelled messages under a softmax over all messages of a question
(listwise ranking: Cao et al., 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach"), with an
L2 penalty. Every data set counts the same, and cross-validation leaves out one conversation at a time.
"""

import argparse
import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from mnemon_bench.quality.recall import ADVERSARIAL, Data, LabelledQuestion, load_data, turn_id
from mnemon_consumers.index.texts import build_message_texts
from mnemon_consumers.retrieve.search import rerank
from mnemon_consumers.retrieve.search.candidates import Breadth, choose_breadth
from mnemon_consumers.retrieve.search.fusion import fuse_rankings
from mnemon_consumers.retrieve.search.message_features import MessageFeatures, extract_features
from mnemon_consumers.retrieve.search.query.intent import QueryIntent
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_contracts.events.chat import MessageV1
from mnemon_infra.database.messages.lookup import AROUND, Surroundings, VisibleMessage
from mnemon_infra.models import bm25
from mnemon_infra.models.embedding import CorpusStatistics
from mnemon_infra.models.wordllama import load_wordllama
from mnemon_infra.vectors.port import PointHit
from mnemon_producers.events import ChatEvent

PENALTY: Final = 5.0
"""Weight of the squared weights in the loss. Recall changes by less than 0.01 from 1 to 20."""

SET_WEIGHT: Final = 400.0
"""Weight of each data set in the loss, in questions."""

LEAST_GAIN: Final = 1e-6
"""Decrease of the loss below which the fit ends."""

DEPTHS: Final = (5, 10)

Vector = NDArray[np.float64]


class Labelled(NamedTuple):
    """A question with the features of its candidates.

    Attributes:
        data_set: name of the data set.
        user: the conversation.
        features: a row for each candidate, in the order of `MessageFeatures`.
        is_evidence: for each candidate, whether it holds the answer.
        evidence: number of messages that hold the answer, found or not.
    """

    data_set: str
    user: str
    features: Vector
    is_evidence: NDArray[np.bool_]
    evidence: int


class Conversation:
    """The messages of one user, with their vectors and term weights."""

    def __init__(self, messages: Sequence[VisibleMessage]) -> None:
        """Index the messages."""
        self.messages = messages
        self.texts = [build_message_texts(each.content, each.name, each.sent_at) for each in messages]
        self.meanings = np.asarray(asyncio.run(load_wordllama().embed([each.meaning for each in self.texts])))
        self.points = [uuid4() for _ in messages]
        self.weights: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for place, text in enumerate(self.texts):
            sparse = bm25.weigh_document(text.words)
            for term, weight in zip(sparse.indices, sparse.values, strict=True):
                self.weights[term].append((place, weight))

    def find(
        self, question: str, rarity: Mapping[int, float], tokens: CorpusStatistics, limit: int
    ) -> tuple[list[PointHit], list[PointHit]]:
        """Return the hits by words and by meaning, as the engine does."""
        scores = np.zeros(len(self.messages))
        for term, value in rarity.items():
            for place, weight in self.weights.get(term, ()):
                scores[place] += value * weight
        meaning = asyncio.run(load_wordllama().embed_query(question, tokens))
        by_words = [each for each in self._best(scores, limit) if each.score > 0]
        return by_words, self._best((self.meanings @ meaning).astype(np.float64), limit)

    def surround(self, found: Sequence[str], anchors: int) -> Surroundings:
        """Return the found messages, and those around the first of them."""
        place_of = {each.event_id: place for place, each in enumerate(self.messages)}
        around = Surroundings({}, {})
        for rank, event_id in enumerate(found):
            place = place_of[event_id]
            around.messages[self.messages[place].seq] = self.messages[place]
            if rank < anchors:
                stretch = self.messages[max(0, place - AROUND) : place + AROUND + 1]
                around.messages.update((each.seq, each) for each in stretch)
                around.following.update((one.seq, other.seq) for one, other in pairwise(stretch))
        return around

    def _best(self, scores: Vector, limit: int) -> list[PointHit]:
        order = np.argsort(-scores, kind="stable")[:limit]
        return [
            PointHit(self.points[place], float(scores[place]), {"event_id": self.messages[place].event_id})
            for place in order
        ]


def label_questions(name: str, data: Data, breadth: Breadth) -> Iterator[Labelled]:
    """Yield the questions of a data set with the features of their candidates."""
    messages = [list(read_messages(each.events)) for each in data.conversations]
    conversations = {
        each.events[0].user: Conversation(said)
        for each, said in zip(data.conversations, messages, strict=True)
    }
    texts = [": ".join(filter(None, (each.name, each.content))) for said in messages for each in said]
    tokens = asyncio.run(load_wordllama().statistics(texts))
    indexed = TermStatistics.of_texts(
        [text.words for conversation in conversations.values() for text in conversation.texts]
    )
    statistics = TermStatistics.of_texts(texts)
    for question in data.questions:
        if question.category != ADVERSARIAL:
            conversation = conversations[question.user]
            intent = QueryIntent(question.text, conversation.messages[-1].sent_at)
            by_words, by_meaning = conversation.find(
                question.text, indexed.weigh_terms(intent.terms), tokens, breadth.candidates
            )
            fused = fuse_rankings(by_words, by_meaning, breadth.candidates)[: breadth.reranked]
            found = {str(each.payload["event_id"]): each for each in fused}
            around = conversation.surround(tuple(found), breadth.anchors)
            rows = extract_features(found, around, intent, statistics)
            yield Labelled(
                name,
                question.user,
                np.array([features for _, features in rows], dtype=np.float64),
                np.array([_is_evidence(message, question) for message, _ in rows]),
                len(question.evidence),
            )


def read_messages(events: Iterable[ChatEvent]) -> Iterator[VisibleMessage]:
    """Yield the messages of a conversation, as `retrieve` reads them."""
    said = (each.event for each in events if isinstance(each.event, MessageV1))
    for seq, each in enumerate(said, 1):
        assert each.sent_at is not None
        yield VisibleMessage(seq, str(each.id), each.role, each.content, each.name, each.sent_at, "chat")


def _is_evidence(message: VisibleMessage, question: LabelledQuestion) -> bool:
    return turn_id(message.event_id) in question.evidence


def fit_weights(questions: Sequence[Labelled], penalty: float = PENALTY) -> Vector:
    """Return the weights with the highest likelihood, by Newton's method; the loss is convex.

    A question without a candidate that holds the answer teaches nothing and is left out.
    """
    usable = [each for each in questions if each.is_evidence.any()]
    count_of = Counter(each.data_set for each in usable)
    shares = [SET_WEIGHT / count_of[each.data_set] for each in usable]

    def compute_loss(weights: Vector) -> float:
        return penalty * float(weights @ weights) / 2 + sum(
            share * _compute_surprise(each, weights) for each, share in zip(usable, shares, strict=True)
        )

    weights = np.zeros(len(MessageFeatures._fields))
    loss = compute_loss(weights)
    while True:
        gradient, curvature = penalty * weights, penalty * np.eye(len(weights))
        for each, share in zip(usable, shares, strict=True):
            rows = each.features
            chances = _compute_chances(rows @ weights)
            mean = chances @ rows
            gradient += share * (mean - rows[each.is_evidence].mean(axis=0))
            curvature += share * ((rows.T * chances) @ rows - np.outer(mean, mean))
        step = np.linalg.solve(curvature, gradient)
        while (lower := compute_loss(weights - step)) > loss:
            step /= 2
        if loss - lower < LEAST_GAIN:
            return weights
        weights, loss = weights - step, lower


def _compute_chances(logits: Vector) -> Vector:
    odds: Vector = np.exp(logits - logits.max())
    chances: Vector = odds / odds.sum()
    return chances


def _compute_surprise(question: Labelled, weights: Vector) -> float:
    """Return the mean negative logarithm of the chance of a message that holds the answer."""
    logits = question.features @ weights
    highest = logits.max()
    total = highest + np.log(np.exp(logits - highest).sum())
    return float(total - logits[question.is_evidence].mean())


def measure_recall(questions: Iterable[tuple[Labelled, Vector]]) -> dict[str, dict[str, float]]:
    """Return the mean recall of each data set at each depth."""
    recalls: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each, weights in questions:
        # Of equal scores the newer message comes first, as in `rerank_messages`.
        order = np.lexsort((-np.arange(len(each.features)), -(each.features @ weights)))
        for depth in DEPTHS:
            found = float(each.is_evidence[order[:depth]].sum()) / each.evidence
            recalls[each.data_set][f"recall@{depth}"].append(found)
        recalls[each.data_set]["in reach"].append(float(each.is_evidence.sum()) / each.evidence)
    return {
        name: {depth: float(np.mean(values)) for depth, values in by_depth.items()}
        for name, by_depth in recalls.items()
    }


def cross_validate(questions: Sequence[Labelled], penalty: float = PENALTY) -> dict[str, dict[str, float]]:
    """Return the mean recall with weights that were fitted without the question's conversation."""
    judged: list[tuple[Labelled, Vector]] = []
    for user in sorted({each.user for each in questions}):
        weights = fit_weights([each for each in questions if each.user != user], penalty)
        judged += [(each, weights) for each in questions if each.user == user]
    return measure_recall(judged)


def write_weights(weights: Vector) -> None:
    """Replace the weights beside the ranking, with the next version."""
    path = Path(rerank.__file__).with_name(rerank.WEIGHTS_FILE)
    lines = path.read_text(encoding="utf-8").splitlines()
    version = next(int(line.partition("=")[2]) for line in lines if line.startswith("version"))
    comment = [line for line in lines if line.startswith("#")]
    values = [f"{name} = {value:.3f}" for name, value in zip(MessageFeatures._fields, weights, strict=True)]
    path.write_text(
        "\n".join([*comment, f"version = {version + 1}", "", "[weights]", *values, ""]), encoding="utf-8"
    )


def main() -> None:
    """Fit the weights, print them with fitted and cross-validated recall, and write them if asked to."""
    parser = argparse.ArgumentParser(description="Fit the weights of the ranking of messages.")
    parser.add_argument("data", type=Path, nargs="+", help="Folders of conversations in the form of LoCoMo.")
    parser.add_argument("--write", action="store_true", help=f"Replace {rerank.WEIGHTS_FILE}.")
    arguments = parser.parse_args()
    breadth = choose_breadth(max(DEPTHS))
    questions = [
        each for path in arguments.data for each in label_questions(path.name, load_data(path), breadth)
    ]
    weights = fit_weights(questions)
    present = np.array(rerank.load_weights())
    figures = {
        "present": measure_recall((each, present) for each in questions),
        "fitted": measure_recall((each, weights) for each in questions),
        "cross-validated": cross_validate(questions),
    }
    for title, by_set in figures.items():
        for name, values in by_set.items():
            shown = "  ".join(f"{depth} {value:.3f}" for depth, value in values.items())
            sys.stdout.write(f"{title:16} {name:10} {shown}\n")
    for name, weight in zip(MessageFeatures._fields, weights, strict=True):
        sys.stdout.write(f"{name:18} {weight:7.3f}\n")
    if arguments.write:
        write_weights(weights)


if __name__ == "__main__":
    main()
