"""Latency of `context` for conversations of ten and of ten thousand messages, without a cache."""

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any
from uuid import uuid4

from nats.aio.client import Client

from mnemon_bench.baselines.echo import SUBJECT
from mnemon_bench.measures.percentiles import compute_median_percentiles, compute_percentiles
from mnemon_bench.workers.processes import spawn_consumers, spawn_server
from mnemon_bench.workloads.conversations import wait_for_index
from mnemon_bench.workloads.sentences import make_fact, make_question
from mnemon_consumers.retrieve.context.contents import SECTIONS
from mnemon_contracts.base import Event
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import Decision, Fact, FactSavedV1, ProfileSetV1, SummaryWrittenV1, Tier
from mnemon_contracts.settings.document import set_value
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import build_ask_subject, build_chat_subject, build_memory_subject
from mnemon_contracts.verbs.ask import ContextReplyV1
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import change_settings

TENANT = "bench"
LENGTHS = (10, 10_000)
BUDGET = SettingsV1().context.budget
TARGETS = {"context_10000_to_10": 1.5, "tokens_10": BUDGET, "tokens_10000": BUDGET}

TALK = "talk"
TIERS: Sequence[tuple[Tier, str, int]] = (("profile", "pf", 12), ("working", "wk", 6), ("archive", "ar", 100))
"""For each tier, the prefix of its ids and the number of facts that a user has in it."""

DEFAULT_SECTIONS = frozenset(name for name in SECTIONS if getattr(SettingsV1().context.sections, name))
"""Sections that a long conversation's context has with the default settings."""

SUMMARIES = 3
UNCOVERED = SettingsV1().compaction.after_messages
"""Number of newest messages of a long conversation that no summary covers."""

MAX_ATTEMPTS = 5
"""Maximum number of requests for one context."""


async def run(
    deployment: Deployment,
    *,
    rounds: int = 5,
    requests: int = 300,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure contexts of the short and the long conversation, and the echo, interleaved, for one caller.

    Both conversations get the same queries. The short one has 10 messages, the long one 10,000.

    Returns:
        `ratios` of the medians: `context_10000_to_10` and `context_<messages>_to_echo`. `targets`: the limits
        of ratios and tokens. `tokens_<messages>`: tokens of the largest context. `milliseconds` by number of
        messages, and of the echo.

    Raises:
        RuntimeError: a context fails, or lacks a section.
    """
    # A cache for one user never hits: the next request is about the other one.
    uncached = deployment.model_copy(update={"cached_users": 1})
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ("echo", *map(str, LENGTHS))}
    tokens: dict[str, int] = {}
    async with AsyncExitStack() as ends:
        connection = await ends.enter_async_context(await connect_deployment(deployment, name="bench"))
        # Without a threshold, queries that no message answers would get a context without conversation.
        await change_settings(connection, partial(set_value, name="retrieval.threshold", value=0.0))
        await ends.enter_async_context(spawn_server("mnemon_bench.baselines.echo", str(deployment.nats_url)))
        await ends.enter_async_context(spawn_consumers(["persist", "index", "retrieve"], uncached))
        await _load_users(connection)
        report("loaded")
        for number in range(rounds):
            times["echo"].append(
                compute_percentiles([await _measure_echo(connection) for _ in range(requests)])
            )
            taken: dict[str, list[float]] = {str(length): [] for length in LENGTHS}
            chance = random.Random(number)
            for query in (make_question(chance.randrange(max(LENGTHS))) for _ in range(requests)):
                for length in LENGTHS:
                    milliseconds, reply = await _request_context(connection, length, query)
                    taken[str(length)].append(milliseconds)
                    tokens[str(length)] = max(tokens.get(str(length), 0), reply.tokens or 0)
            for name, each in taken.items():
                times[name].append(compute_percentiles(each))
            report(f"round {number + 1} of {rounds}: " + ", ".join(f"{n} {t[-1]}" for n, t in times.items()))
    milliseconds_of = compute_median_percentiles(times)
    few, many, echo = (milliseconds_of[name]["p50"] for name in ("10", "10000", "echo"))
    return {
        "ratios": {
            "context_10000_to_10": round(many / few, 2),
            "context_10_to_echo": round(few / echo, 2),
            "context_10000_to_echo": round(many / echo, 2),
        },
        "targets": {"at_most": TARGETS},
        **{f"tokens_{name}": most for name, most in tokens.items()},
        "milliseconds": milliseconds_of,
    }


async def _load_users(connection: Client) -> None:
    """Load two users who differ only in the length of their conversations."""
    for length in LENGTHS:
        said = [each.seq for each in await append_events(connection, list(_make_messages(length)))]
        last_seq = (await append_events(connection, list(_make_memory(length, said))))[-1].seq
    await wait_for_index(connection, last_seq)


def _make_messages(length: int) -> Iterator[LogEvent]:
    for number in range(length):
        message = (
            MessageV1(role="assistant", content=make_fact(number))
            if number % 4 > 1
            else MessageV1(role="user", content=make_question(number))
        )
        subject = build_chat_subject(TENANT, _name_user(length), TALK, "message")
        yield LogEvent(subject, message.encode_body(), uuid4().hex)


def _make_memory(length: int, positions: Sequence[int]) -> Iterator[LogEvent]:
    """Yield facts, summaries of the oldest messages, and the profile.

    Args:
        length: number of messages of the conversation.
        positions: log positions of these messages.
    """

    def build_event(name: str, event: Event) -> LogEvent:
        return LogEvent(
            build_memory_subject(TENANT, _name_user(length), name), event.encode_body(), uuid4().hex
        )

    for number, (tier, name) in enumerate((tier, name) for tier, name, count in TIERS for _ in range(count)):
        kept = Fact(text=make_fact(number), tier=tier, importance=number % 10 + 1)
        saved = FactSavedV1(
            fact_id=f"{name}_{number + 1:03}", fact=kept, decision=Decision(proposal_id=uuid4().hex)
        )
        yield build_event("fact.saved", saved)
    covered = max(1, (length - UNCOVERED) // SUMMARIES)
    for number in range(SUMMARIES):
        first, last = positions[number * covered], positions[(number + 1) * covered - 1]
        text = f"They spoke of this: {make_fact(number)}; and of that: {make_fact(number + 1)}."
        summary = SummaryWrittenV1(
            summary_id=f"s-{number}", conversation=TALK, from_seq=first, to_seq=last, text=text
        )
        yield build_event("summary.written", summary)
    data = ProfileSetV1(fields={"name": "Анна", "city": "Kazan", "likes": ["tea", "trains"]})
    yield build_event("profile.set", data)


def _name_user(length: int) -> str:
    return f"u{length}"


async def _request_context(connection: Client, length: int, query: str) -> tuple[float, ContextReplyV1]:
    """Return the milliseconds that a whole context took, and the context.

    A context that lacks parts is requested again. On a busy machine, reading a part may take longer than a
    context waits for it. `length` is the number of messages of the conversation.

    Raises:
        RuntimeError: the last context has an error or lacks a section, or all `MAX_ATTEMPTS` contexts lack
            parts.
    """
    subject = build_ask_subject(TENANT, _name_user(length), "context")
    for _ in range(MAX_ATTEMPTS):
        begun = time.perf_counter()
        message = await connection.request(subject, json.dumps({"query": query}).encode(), timeout=30)
        milliseconds = (time.perf_counter() - begun) * 1000
        reply = ContextReplyV1.parse(message.data)
        if not reply.degraded:
            break
    wanted = DEFAULT_SECTIONS if length == max(LENGTHS) else DEFAULT_SECTIONS - {"conversation"}
    if reply.error or reply.degraded or not wanted <= reply.sections.keys():
        raise RuntimeError(
            f"context of {length} messages for {query!r} has an error or lacks parts: "
            f"{message.data.decode()}; correct the cause if `error` names one, otherwise run the bench again "
            "on an idle machine"
        )
    return milliseconds, reply


async def _measure_echo(connection: Client) -> float:
    begun = time.perf_counter()
    await connection.request(SUBJECT, b"{}", timeout=30)
    return (time.perf_counter() - begun) * 1000
