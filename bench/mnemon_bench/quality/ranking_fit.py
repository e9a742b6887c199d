"""Fit of the ranking's weights on conversations with questions; `just fit-ranking` runs it.

    uv run python -m mnemon_bench.quality.ranking_fit DATA [DATA ...] [--write]

Each DATA is a file or a folder of conversations in the LoCoMo format. The candidates are computed in this
process, with the same vectors and term weights as in the vector store, so that a fit takes seconds and needs
no server. The weights maximise the likelihood of the labelled messages under a softmax over all candidates of
a question (listwise ranking: Cao et al., 2007, "Learning to Rank: From Pairwise Approach to Listwise
Approach"), with an L2 penalty. Every data set has the same weight, and cross-validation leaves out one
conversation at a time.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemon_bench.quality.in_process_search import DEPTHS, InProcessSearch, average_recall
from mnemon_bench.quality.recall import (
    ADVERSARIAL,
    LabelledConversations,
    compute_recall,
    load_conversations,
    parse_turn_id,
)
from mnemon_consumers.retrieve.search.candidates import Breadth, choose_breadth
from mnemon_consumers.retrieve.search.messages import rerank
from mnemon_consumers.retrieve.search.messages.message_features import MessageFeatures
from mnemon_infra.models.embedders.wordllama import THRESHOLDS

PENALTY: Final = 5.0
"""Factor of the L2 penalty in the loss. Between the values 1 and 20, recall changes by less than 0.01."""

SET_WEIGHT: Final = 400.0
"""Sum of the weights of the questions of each data set in the loss."""

LEAST_GAIN: Final = 1e-6
"""Decrease of the loss in one step below which the fit ends."""

Vector = NDArray[np.float64]


class LabelledCandidates(NamedTuple):
    """A question with the features of its candidates.

    Attributes:
        features: a row for each candidate, with the columns in the order of `MessageFeatures`.
        turns: for each candidate, the id of its turn.
        is_evidence: for each candidate, whether it contains the answer.
        evidence: ids of the turns that contain the answer, found or not.
    """

    data_set: str
    user: str
    features: Vector
    turns: Sequence[str]
    is_evidence: NDArray[np.bool_]
    evidence: frozenset[str]

    @property
    def conversation(self) -> tuple[str, str]:
        """Data set and user of the conversation; a user of the same name may exist in several data sets."""
        return self.data_set, self.user


def label_questions(name: str, data: LabelledConversations, breadth: Breadth) -> Iterator[LabelledCandidates]:
    """Yield the questions of a data set that have an answer, with the features of their candidates.

    Args:
        name: name of the data set.
        data: its conversations and questions.
        breadth: numbers of messages that each step of the search considers.
    """
    search = InProcessSearch(data)
    for question in data.questions:
        if question.category != ADVERSARIAL:
            intent = search.build_intent(question.user, question.text)
            rows = search.gather_features(question.user, intent, breadth, THRESHOLDS)
            turns = [parse_turn_id(message.event_id) for message, _ in rows]
            yield LabelledCandidates(
                name,
                question.user,
                np.array([features for _, features in rows], dtype=np.float64),
                turns,
                np.array([turn in question.evidence for turn in turns]),
                question.evidence,
            )


def fit_weights(questions: Sequence[LabelledCandidates], penalty: float = PENALTY) -> Vector:
    """Return the weights with the highest likelihood, by Newton's method; the loss is convex.

    Questions without a candidate that contains the answer are left out.
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


def _compute_surprise(question: LabelledCandidates, weights: Vector) -> float:
    """Return the mean negative log probability of the messages that contain the answer."""
    logits = question.features @ weights
    highest = logits.max()
    total = highest + np.log(np.exp(logits - highest).sum())
    return float(total - logits[question.is_evidence].mean())


def measure_recall(questions: Iterable[tuple[LabelledCandidates, Vector]]) -> dict[str, dict[str, float]]:
    """Return the mean recall of each data set at each depth; `in reach` is the recall of all candidates."""
    answers: dict[str, list[tuple[frozenset[str], list[str]]]] = defaultdict(list)
    for each, weights in questions:
        # Among messages with equal scores, the newer comes first, as in `score_messages`.
        order = np.lexsort((-np.arange(len(each.features)), -(each.features @ weights)))
        answers[each.data_set].append((each.evidence, [each.turns[place] for place in order]))
    return {
        name: average_recall(ranked) | {"in reach": fmean(compute_recall(*each) for each in ranked)}
        for name, ranked in answers.items()
    }


def cross_validate(questions: Sequence[LabelledCandidates]) -> dict[str, dict[str, float]]:
    """Return the result of `measure_recall`, with weights fitted without the question's own conversation."""
    judged: list[tuple[LabelledCandidates, Vector]] = []
    for left_out in sorted({each.conversation for each in questions}):
        weights = fit_weights([each for each in questions if each.conversation != left_out])
        judged += [(each, weights) for each in questions if each.conversation == left_out]
    return measure_recall(judged)


def write_weights(weights: Vector) -> None:
    """Write the weights into the file that the ranking loads, and increase the version of the file."""
    path = Path(rerank.__file__).with_name(rerank.WEIGHTS_FILE)
    lines = path.read_text(encoding="utf-8").splitlines()
    version = next(int(line.partition("=")[2]) for line in lines if line.startswith("version"))
    comment = [line for line in lines if line.startswith("#")]
    values = [f"{name} = {value:.3f}" for name, value in zip(MessageFeatures._fields, weights, strict=True)]
    path.write_text(
        "\n".join([*comment, f"version = {version + 1}", "", "[weights]", *values, ""]), encoding="utf-8"
    )


def main() -> None:
    """Fit the weights, and print them and the recall with present, fitted and cross-validated weights."""
    parser = argparse.ArgumentParser(
        description="Fit the weights of the ranking of messages, and print the recall."
    )
    parser.add_argument(
        "data",
        type=Path,
        nargs="+",
        help="Conversations in the LoCoMo format: files, or folders of JSON files. Each path is a data set.",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"Write the fitted weights to {rerank.WEIGHTS_FILE}. Default: only print them.",
    )
    arguments = parser.parse_args()
    breadth = choose_breadth(max(DEPTHS))
    questions = [
        each
        for path in arguments.data
        for each in label_questions(path.name, load_conversations(path), breadth)
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
