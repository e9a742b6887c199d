"""Fit of the weights of answerability on conversations with questions; `just fit-answerability` runs it.

    uv run python -m mnemon_bench.quality.answerability_fit DATA [DATA ...] [--write]

Each DATA is a file or a folder of conversations in the LoCoMo format. Two logistic regressions, `topic`
and `speaker`, separate questions that the messages answer from questions that they do not answer. `topic`
learns from questions about other conversations of the same set. `speaker` learns from adversarial questions,
which ask about one person what another person said. Every data set has the same weight. Cross-validation
leaves out one conversation at a time.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, Literal, NamedTuple

import numpy as np

from mnemon_bench.quality.in_process_search import InProcessSearch
from mnemon_bench.quality.recall import (
    ADVERSARIAL,
    LabelledConversations,
    LabelledQuestion,
    compute_recall,
    load_conversations,
    parse_turn_id,
)
from mnemon_consumers.retrieve.search.candidates import choose_breadth
from mnemon_consumers.retrieve.search.messages import answerability
from mnemon_consumers.retrieve.search.messages.answerability import (
    AnswerabilityFeatures,
    AnswerabilityWeights,
    SpeakerFeatures,
    TopicFeatures,
    compute_answerability,
    extract_answerability_features,
    load_answerability_weights,
)
from mnemon_consumers.retrieve.search.messages.rerank import list_best_messages
from mnemon_infra.models.embedders.wordllama import THRESHOLDS

Kind = Literal["answered", "other_conversation", "adversarial"]

DEPTH: Final = 10
"""Number of best turns over which recall is measured."""

PENALTY: Final = 1.0
"""Factor of the L2 penalty in the loss."""

UNANSWERED_WEIGHT: Final = 0.3
"""Weight of an answered question whose answer is not among the hits; the recall, 0 to 1, is added.

A question whose hits contain the answer has more weight, because recall is lost if the search leaves out
these hits.
"""

SET_WEIGHT: Final = 400.0
"""Sum of the weights of the answered questions of each data set in the loss."""

SHARES: Final[dict[Kind, float]] = {"answered": 1.0, "other_conversation": 0.75, "adversarial": 0.4}
"""Weights of the kinds of questions, as shares of `SET_WEIGHT`.

Adversarial questions are rarer than other questions without an answer, and harder to detect. On LoCoMo
(cross-validated, with earlier weights of the ranking), a share of 0.15 leaves hits to 74 % of them and costs
0.010 of recall@10; a share of 0.4 leaves 51 % and costs 0.014, a share of 0.6 leaves 44 % and costs 0.022.
"""

STEPS: Final = 60
"""Number of steps of Newton's method; the loss is convex, and ten steps usually suffice."""

MIN_PROBABILITIES: Final = (0.25, 0.3, 0.35, 0.4, 0.5)
"""Minimum probabilities of an answer for which the figures are printed."""


class JudgedQuestion(NamedTuple):
    """A question with the features that tell whether the messages of a conversation answer it.

    Attributes:
        owner: the user whose conversation the question is about.
        kind: `answered`: the searched conversation has the answer; `other_conversation`: another one has it;
            `adversarial`: no conversation has it.
        recall: for the kind `answered`, share of the turns with the answer that are among the hits, 0 to 1;
            for the other kinds 0.
        features: features for the regressions; None if the search does not estimate answerability for the
            query.
    """

    data_set: str
    owner: str
    kind: Kind
    recall: float
    has_hits: bool
    features: AnswerabilityFeatures | None


def judge_questions(name: str, data: LabelledConversations) -> Iterator[JudgedQuestion]:
    """Yield each question as asked in its own conversation and, if not adversarial, in two others at most.

    `name` is the name of the data set.
    """
    search = InProcessSearch(data)
    users = list(search.conversations)
    for question in data.questions:
        if question.category == ADVERSARIAL:
            yield _judge_question(name, search, question, question.user, "adversarial")
            continue
        place = users.index(question.user)
        yield _judge_question(name, search, question, question.user, "answered")
        for user in (users[place + 1 :] + users[:place])[:2]:
            yield _judge_question(name, search, question, user, "other_conversation")


def _judge_question(
    name: str, search: InProcessSearch, question: LabelledQuestion, user: str, kind: Kind
) -> JudgedQuestion:
    intent = search.build_intent(user, question.text)
    scored = search.score_messages(user, intent, choose_breadth(DEPTH), THRESHOLDS)
    turns = [parse_turn_id(each.message.event_id) for each in list_best_messages(scored, DEPTH)]
    found = compute_recall(question.evidence, turns) if kind == "answered" else 0.0
    features = extract_answerability_features(scored, intent, search.statistics)
    return JudgedQuestion(name, question.user, kind, found, bool(scored), features)


def fit_weights(questions: Sequence[JudgedQuestion]) -> AnswerabilityWeights:
    """Fit a regression on the topic features and one on the speaker features; return their weights."""
    topic = _fit_regression(
        [(each, each.features.topic) for each in questions if each.features and each.kind != "adversarial"]
    )
    # Sets without adversarial questions still tell what an answered question looks like.
    speaker = _fit_regression(
        [
            (each, each.features.speaker)
            for each in questions
            if each.features and each.features.speaker and each.kind != "other_conversation"
        ]
    )
    return AnswerabilityWeights(
        TopicFeatures(*topic[:-1]), topic[-1], SpeakerFeatures(*speaker[:-1]), speaker[-1]
    )


def _fit_regression(rows: Sequence[tuple[JudgedQuestion, Sequence[float]]]) -> list[float]:
    """Return the weights of a logistic regression, with the constant last.

    `rows` has the questions, each with its features for this regression.
    """
    importance = [UNANSWERED_WEIGHT + each.recall if each.kind == "answered" else 1.0 for each, _ in rows]
    totals: dict[tuple[str, Kind], float] = defaultdict(float)
    for (each, _), value in zip(rows, importance, strict=True):
        totals[each.data_set, each.kind] += value
    shares = np.array(
        [
            SET_WEIGHT * SHARES[each.kind] * value / totals[each.data_set, each.kind]
            for (each, _), value in zip(rows, importance, strict=True)
        ]
    )
    values = np.array([(*features, 1.0) for _, features in rows])
    is_answered = np.array([each.kind == "answered" for each, _ in rows])
    penalties = np.array([*[PENALTY] * (values.shape[1] - 1), 1e-6])
    weights = np.zeros(values.shape[1])
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(-values @ weights))
        gradient = values.T @ (shares * (chances - is_answered)) + penalties * weights
        curvature = (values.T * (shares * chances * (1 - chances))) @ values + np.diag(penalties)
        weights -= np.linalg.solve(curvature, gradient)
    return [float(each) for each in weights]


def judge_answer(question: JudgedQuestion, weights: AnswerabilityWeights) -> float:
    """Return the probability that the messages answer the question: 0 without hits, 1 without features."""
    if not question.has_hits:
        return 0.0
    return compute_answerability(question.features, weights) if question.features else 1.0


def cross_validate(questions: Sequence[JudgedQuestion]) -> list[tuple[JudgedQuestion, float]]:
    """Return each question with its probability, by weights that were fitted without its conversation."""
    judged: list[tuple[JudgedQuestion, float]] = []
    for data_set, owner in sorted({(each.data_set, each.owner) for each in questions}):
        weights = fit_weights(
            [each for each in questions if (each.data_set, each.owner) != (data_set, owner)]
        )
        judged += [
            (each, judge_answer(each, weights))
            for each in questions
            if (each.data_set, each.owner) == (data_set, owner)
        ]
    return judged


def summarise_data_sets(judged: Sequence[tuple[JudgedQuestion, float]], least: float) -> Iterator[str]:
    """Yield a line for each data set: the effect of hiding hits of questions below the probability `least`.

    A line has the recall before and after, and the share of unanswerable questions that still have hits.
    """
    for data_set in dict.fromkeys(each.data_set for each, _ in judged):
        own = [(each, chance) for each, chance in judged if each.data_set == data_set]
        kept = [each.recall * (chance >= least) for each, chance in own if each.kind == "answered"]
        whole = [each.recall for each, _ in own if each.kind == "answered"]
        shown = [f"{data_set:10} recall@{DEPTH} {fmean(whole):.3f} to {fmean(kept):.3f}"]
        passed: dict[Kind, list[bool]] = defaultdict(list)
        for each, chance in own:
            passed[each.kind].append(chance >= least)
        del passed["answered"]
        yield "  ".join(shown + [f"{kind} with hits {fmean(some):.3f}" for kind, some in passed.items()])


def write_weights(weights: AnswerabilityWeights) -> None:
    """Write the weights into the file that a search loads, and increase the version of the file."""
    path = Path(answerability.__file__).with_name(answerability.WEIGHTS_FILE)
    lines = path.read_text(encoding="utf-8").splitlines()
    version = next(int(line.partition("=")[2]) for line in lines if line.startswith("version"))
    comment = [line for line in lines if line.startswith("#")]
    path.write_text(
        "\n".join([*comment, f"version = {version + 1}", *_list_weights(weights), ""]), encoding="utf-8"
    )


def _list_weights(weights: AnswerabilityWeights) -> Iterator[str]:
    parts = (("topic", weights.topic, weights.topic_constant),)
    for title, values, constant in (*parts, ("speaker", weights.speaker, weights.speaker_constant)):
        yield from ("", f"[{title}]")
        yield from (f"{name} = {value:.3f}" for name, value in values._asdict().items())
        yield f"constant = {constant:.3f}"


def main() -> None:
    """Fit the weights, and print figures for present, fitted and cross-validated weights."""
    parser = argparse.ArgumentParser(
        description="Fit the weights of answerability, and print their effect on recall and on questions "
        "without an answer."
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
        help=f"Write the fitted weights to {answerability.WEIGHTS_FILE}. Default: only print them.",
    )
    arguments = parser.parse_args()
    questions = [
        each for path in arguments.data for each in judge_questions(path.name, load_conversations(path))
    ]
    weights, present = fit_weights(questions), load_answerability_weights()
    figures = {
        "present": [(each, judge_answer(each, present)) for each in questions],
        "fitted": [(each, judge_answer(each, weights)) for each in questions],
        "cross-validated": cross_validate(questions),
    }
    for title, judged in figures.items():
        for least in MIN_PROBABILITIES:
            for line in summarise_data_sets(judged, least):
                sys.stdout.write(f"{title:16} {least:.2f}  {line}\n")
    sys.stdout.write("\n".join([*_list_weights(weights), ""]))
    if arguments.write:
        write_weights(weights)


if __name__ == "__main__":
    main()
