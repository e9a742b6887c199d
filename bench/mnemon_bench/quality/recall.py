"""Recall of `search` on the questions that come with conversations in the LoCoMo format.

The conversations take the full path: they are published, persisted, indexed, and searched over NATS.
"""

import asyncio
import itertools
import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np
from nats.aio.client import Client

from mnemon_bench.workers.processes import spawn_consumers
from mnemon_consumers.retrieve.search.candidates import choose_breadth
from mnemon_consumers.retrieve.search.fusion import fuse_rankings
from mnemon_consumers.retrieve.search.statistics import build_sampled_texts
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_contracts.settings.groups import Embedding
from mnemon_contracts.subjects import build_ask_subject
from mnemon_contracts.verbs.tools import SearchReplyV1
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.messages.sample import load_sample
from mnemon_infra.models.embedding import Dense, Sparse
from mnemon_infra.models.words import concepts
from mnemon_infra.vectors.port import Collection, PointHit
from mnemon_infra.vectors.vector_index import open_index
from mnemon_producers.client import MemoryClient
from mnemon_producers.locomo import LocomoConversation, NotLocomo, read_conversations

TENANT: Final = "recall"
DEPTHS: Final = (5, 10, 20)
TARGETS: Final = {
    "at_least": {"recall@5": 0.70, "recall@10": 0.78},
    "at_most": {"search_p50_ms": 5.0},
}
RUSSIAN_CONVERSATIONS: Final = Path(__file__).with_name("datasets") / "russian_conversations"
"""Folder of the Russian conversations with questions that mnemon ships.

`friends.json` was known when rules and weights were chosen; the other conversations were written later,
without use of mnemon.
"""

CONVERSATION_LANGUAGES: Final = {
    "russian": frozenset({1, 2, 4}),
    "russian_reworded": frozenset({6}),
    "english": frozenset({3}),
}
"""Categories of the questions in `RUSSIAN_CONVERSATIONS`; reworded questions avoid the words of the turns."""

CONVERSATION_TARGETS: Final = {
    "at_least": {"recall@5_russian": 0.75, "recall@5_english": 0.40},
    "at_most": {"search_p50_ms": 5.0},
}
ADVERSARIAL: Final = 5
"""The category of questions without an answer, which are counted separately."""

REASSIGNED: Final = 200
"""Maximum number of questions that are asked in a conversation without their answer."""

SEED: Final = 1
"""Seed of the random choice in `reassign_questions`."""

WARM_UP_SECONDS: Final = 3.0
"""Duration of the searches before the measurement, in seconds."""

_TURN: Final = re.compile(r"D\d+:\d+")


class LabelledQuestion(NamedTuple):
    """A question, its user and category, and the ids of the turns that contain the answer."""

    user: str
    text: str
    evidence: frozenset[str]
    category: int


class RankedTurns(NamedTuple):
    """A question, the ids of the turns found for it, best first, and the seconds that the search took."""

    question: LabelledQuestion
    turns: Sequence[str]
    seconds: float


Method = Callable[[LabelledQuestion], Awaitable[list[str]]]
"""Function that returns the ids of the turns found for a question, best first."""


class LabelledConversations(NamedTuple):
    """Conversations, and the questions about them whose evidence names turns of the conversations.

    Attributes:
        languages: categories of the questions in each language for which figures are computed separately.
        targets: minima and maxima of the figures.
    """

    conversations: Sequence[LocomoConversation]
    questions: Sequence[LabelledQuestion]
    languages: Mapping[str, frozenset[int]] = {}
    targets: Mapping[str, Mapping[str, float]] = TARGETS


async def run(
    deployment: Deployment, data: LabelledConversations, *, report: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Import the conversations, ask every question, and compare the hits with the evidence.

    Returns:
        `methods`: for each method, recall, hit rate and reciprocal rank, 0 to 1, and the times in ms. The
        fractions are means over all questions that are not adversarial, over each category, and over each
        language of the data. `full` is `search` as a bot uses it, and `threshold_0` is `search` with
        a threshold of 0. `bm25`, `dense` and `fused` are the candidates by words, by vectors and by both,
        before ranking.
        `unanswerable_hit_rate`: the share of questions without an answer that get hits, for each kind that
        the data has; see `compute_hit_rates`.
        `unanswerable_hit_rate_threshold_0`: the same with a threshold of 0. `ratios`: recall@10 of `full`
        over that of `bm25`, `dense` and `fused`. `targets`: minima and maxima of the figures.
        `recall@5`, `recall@10`, `recall@5_<language>` and `search_p50_ms`: figures of `full`.
        `recall@10_threshold_0`: recall@10 of `threshold_0`. `turns`: number of imported turns.

    Raises:
        RuntimeError: a search fails.
    """
    conversations, questions = data.conversations, data.questions
    async with (
        spawn_consumers(["persist", "index", "retrieve"], deployment),
        await connect_deployment(deployment, name="bench") as connection,
    ):
        await _import_conversations(connection, conversations)
        report(f"{sum(each.turns for each in conversations):,} turns imported and indexed")
        by_default, unfiltered = _make_search(connection), _make_search(connection, threshold=0)
        # The first search of a tenant starts a count of its words, for which no search waits.
        await _warm_up_search(questions, by_default)
        answered = {
            "full": await _ask_questions(questions, by_default),
            "threshold_0": await _ask_questions(questions, unfiltered),
        }
        others = reassign_questions(data)
        reassigned = await _ask_questions(others, by_default)
        reassigned_unfiltered = await _ask_questions(others, unfiltered)
    report(f"{len(questions) + len(others):,} questions asked")
    answered |= await _ask_candidates(deployment, questions)
    methods = {name: summarise_method(each, data.languages) for name, each in answered.items()}
    full = methods["full"]
    return {
        "ratios": {
            f"full_to_{name}@10": round(full["recall@10"] / methods[name]["recall@10"], 3)
            for name in ("bm25", "dense", "fused")
        },
        "targets": data.targets,
        "recall@5": full["recall@5"],
        "recall@10": full["recall@10"],
        "recall@10_threshold_0": methods["threshold_0"]["recall@10"],
        "unanswerable_hit_rate": compute_hit_rates(answered["full"], reassigned),
        "unanswerable_hit_rate_threshold_0": compute_hit_rates(
            answered["threshold_0"], reassigned_unfiltered
        ),
        **{f"recall@5_{language}": part["recall@5"] for language, part in full["languages"].items()},
        "search_p50_ms": full["milliseconds"]["p50"],
        "methods": methods,
        "turns": sum(each.turns for each in conversations),
    }


def load_russian_conversations() -> LabelledConversations:
    """Load the Russian conversations that mnemon ships, with targets for each language of the questions."""
    return load_conversations(RUSSIAN_CONVERSATIONS)._replace(
        languages=CONVERSATION_LANGUAGES, targets=CONVERSATION_TARGETS
    )


def load_conversations(path: Path) -> LabelledConversations:
    """Load the conversations of the file `path`, or of all `*.json` files in the folder `path`.

    Raises:
        OSError: a file cannot be read.
        NotLocomo: a file is not a LoCoMo file, or no question names turns of its conversation as evidence.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    conversations: list[LocomoConversation] = []
    questions: list[LabelledQuestion] = []
    for file in files:
        text = file.read_bytes()
        conversations += read_conversations(text, tenant=TENANT)
        samples = json.loads(text)
        for each in samples if isinstance(samples, list) else [samples]:
            questions += _read_questions(each)
    if not questions:
        raise NotLocomo(
            "no question names turns of its conversation as evidence; name a file whose questions do"
        )
    return LabelledConversations(conversations, questions)


def _read_questions(each: dict[str, Any]) -> Iterator[LabelledQuestion]:
    conversation = each["conversation"].values()
    turns = {turn["dia_id"] for session in conversation if isinstance(session, list) for turn in session}
    for asked in each.get("qa", ()):
        # Some questions have several ids in one string.
        evidence = turns.intersection(_TURN.findall(" ".join(asked["evidence"])))
        if evidence:
            yield LabelledQuestion(
                each["sample_id"], asked["question"], frozenset(evidence), asked["category"]
            )


async def _import_conversations(connection: Client, conversations: Iterable[LocomoConversation]) -> None:
    events = [event for conversation in conversations for event in conversation.events]
    published = await MemoryClient(connection, tenant=TENANT).publish_many(events)
    for consumer in "persist", "index":
        while await read_applied_position(connection.jetstream(), consumer) < published.last_seq:
            await asyncio.sleep(0.05)


async def _warm_up_search(questions: Sequence[LabelledQuestion], method: Method) -> None:
    begun = time.perf_counter()
    for question in itertools.cycle(questions):
        await method(question)
        if time.perf_counter() - begun > WARM_UP_SECONDS:
            return


async def _ask_questions(questions: Sequence[LabelledQuestion], method: Method) -> list[RankedTurns]:
    answered = []
    for question in questions:
        begun = time.perf_counter()
        turns = await method(question)
        answered.append(RankedTurns(question, turns, time.perf_counter() - begun))
    return answered


def reassign_questions(data: LabelledConversations) -> list[LabelledQuestion]:
    """Return at most `REASSIGNED` questions, each with the user of another conversation without the answer.

    The result is empty if the data has only one conversation.
    """
    users = sorted({each.user for each in data.questions})
    answerable = [each for each in data.questions if each.category != ADVERSARIAL]
    if len(users) < 2:
        return []
    draw = random.Random(SEED)
    chosen = draw.sample(answerable, min(REASSIGNED, len(answerable)))
    return [each._replace(user=draw.choice([user for user in users if user != each.user])) for each in chosen]


def _make_search(connection: Client, threshold: float | None = None) -> Method:
    body: dict[str, Any] = {"scope": ["messages"], "limit": max(DEPTHS)}
    if threshold is not None:
        body["threshold"] = threshold

    async def search(question: LabelledQuestion) -> list[str]:
        answer = await connection.request(
            build_ask_subject(TENANT, question.user, "search"),
            json.dumps(body | {"query": question.text}).encode(),
            timeout=30,
        )
        reply = SearchReplyV1.model_validate_json(answer.data)
        if reply.error or reply.degraded:
            raise RuntimeError(
                f"search for {question.text!r} failed: {answer.data.decode()}; correct the cause that the "
                "reply names, then run the bench again"
            )
        return [parse_turn_id(hit.id) for hit in reply.hits]

    return search


async def _ask_candidates(
    deployment: Deployment, questions: Sequence[LabelledQuestion]
) -> dict[str, list[RankedTurns]]:
    """Find turns with parts of `search`: `bm25` by words, `dense` by vectors, `fused` by both."""
    async with Database(deployment, name="bench") as database:
        (sample,) = await database.run_query(load_sample([TENANT]))
    async with open_index(deployment, Embedding()) as vector_index:
        embedder = vector_index.embedder
        assert embedder is not None
        texts = [build_sampled_texts(each) for each in sample]
        statistics = await embedder.compute_statistics([each.meaning for each in texts])
        terms = TermStatistics.from_texts([each.words for each in texts])

        async def find(question: LabelledQuestion, *queries: Dense | Sparse) -> list[list[PointHit]]:
            owner = TENANT, question.user
            return await vector_index.vectors.search(
                Collection.MESSAGES,
                owner,
                [terms.weigh_query(each) if isinstance(each, Sparse) else each for each in queries],
                choose_breadth(max(DEPTHS)).candidates,
            )

        async def find_by_words(question: LabelledQuestion) -> list[str]:
            (hits,) = await find(question, concepts.weigh_query(question.text))
            return _list_turn_ids(hits)

        async def find_by_meaning(question: LabelledQuestion) -> list[str]:
            (hits,) = await find(question, await embedder.embed_query(question.text, statistics))
            return _list_turn_ids(hits)

        async def find_by_both(question: LabelledQuestion) -> list[str]:
            meaning = await embedder.embed_query(question.text, statistics)
            by_words, by_meaning = await find(question, concepts.weigh_query(question.text), meaning)
            return _list_turn_ids(fuse_rankings(by_words, by_meaning, choose_breadth(max(DEPTHS)).candidates))

        methods = {"bm25": find_by_words, "dense": find_by_meaning, "fused": find_by_both}
        return {name: await _ask_questions(questions, method) for name, method in methods.items()}


def _list_turn_ids(hits: Iterable[Any]) -> list[str]:
    return [parse_turn_id(str(each.payload["event_id"])) for each in hits][: max(DEPTHS)]


def parse_turn_id(event_id: str) -> str:
    """Return the id of a turn from the end of its event's id: `D1:3` from `locomo:...:D1:3`."""
    return ":".join(event_id.rsplit(":", 2)[1:])


def summarise_method(
    answered: Sequence[RankedTurns], languages: Mapping[str, frozenset[int]] | None = None
) -> dict[str, Any]:
    """Return recall, hit rate, reciprocal rank and times (in ms) of a method.

    Except for the times, the figures are also given by category and by language.

    Args:
        answered: the questions with the turns that the method has found.
        languages: maps each language that gets separate figures to the categories of its questions.
    """
    regular = [each for each in answered if each.question.category != ADVERSARIAL]
    categories = sorted({each.question.category for each in answered})
    p50, p99 = np.percentile([each.seconds * 1000 for each in answered], (50, 99))
    return {
        **_summarise_recall(regular),
        "categories": {
            str(category): _summarise_recall(
                [each for each in answered if each.question.category == category]
            )
            for category in categories
        },
        "languages": {
            language: _summarise_recall([each for each in answered if each.question.category in spoken])
            for language, spoken in (languages or {}).items()
        },
        "milliseconds": {"p50": round(float(p50), 2), "p99": round(float(p99), 2)},
    }


def compute_hit_rates(
    answered: Sequence[RankedTurns], reassigned: Sequence[RankedTurns] = ()
) -> dict[str, float]:
    """Return the share of questions that get hits, for each kind of questions without an answer.

    Args:
        answered: all questions; those of the category `ADVERSARIAL` have the kind `adversarial`.
        reassigned: questions that were asked in another conversation, of the kind `other_conversation`.
    """
    adversarial = [each for each in answered if each.question.category == ADVERSARIAL]
    return {
        kind: round(fmean(bool(each.turns) for each in asked), 4)
        for kind, asked in (("adversarial", adversarial), ("other_conversation", reassigned))
        if asked
    }


def _summarise_recall(answered: Sequence[RankedTurns]) -> dict[str, float]:
    recalls = {
        f"recall@{depth}": [compute_recall(each.question.evidence, each.turns[:depth]) for each in answered]
        for depth in DEPTHS
    }
    means = {name: round(fmean(each), 4) if each else 0.0 for name, each in recalls.items()}
    hits = [bool(each.question.evidence.intersection(each.turns[:10])) for each in answered]
    ranks = [compute_reciprocal_rank(each.question.evidence, each.turns) for each in answered]
    return means | {
        "hit@10": round(fmean(hits), 4) if hits else 0.0,
        "mrr": round(fmean(ranks), 4) if ranks else 0.0,
        "questions": len(answered),
    }


def compute_recall(evidence: frozenset[str], turns: Sequence[str]) -> float:
    """Return the share of the evidence that is among the turns."""
    return len(evidence.intersection(turns)) / len(evidence)


def compute_reciprocal_rank(evidence: frozenset[str], turns: Sequence[str]) -> float:
    """Return one over the rank of the first turn that is evidence; 0 if there is none."""
    return next((1 / place for place, turn in enumerate(turns, 1) if turn in evidence), 0.0)
