"""Summaries and size of the context of a growing conversation."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any, NamedTuple

from nats.aio.client import Client

from mnemon_bench.workers.processes import spawn_consumers
from mnemon_bench.workloads.conversations import (
    TENANT,
    publish_messages,
    wait_for_summaries,
)
from mnemon_bench.workloads.sentences import make_fact, make_question
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import Decision, Fact, FactSavedV1, SummaryMergedV1, SummaryWrittenV1
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import build_ask_subject, build_memory_subject, build_thing_filter
from mnemon_contracts.verbs.ask import ContextReplyV1
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_reader import read_events
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_producers.events import ChatEvent

USER = "talker"
KEY_FACTS = 8

GROWN = 20
"""Number of messages from which on a conversation has summaries."""

INDEX_TIMEOUT = 60.0
"""Maximum seconds until the messages of a step are indexed; contexts show messages that a search finds."""

TARGETS = {
    "at_most": {
        "most_tokens": 1300,
        "most_summaries": SettingsV1().compaction.merge_above,
        "gaps": 0,
        "overlaps": 0,
    },
    "at_least": {"fewest_tokens_when_grown": 700},
}

SummaryEvent = SummaryWrittenV1 | SummaryMergedV1


class Stage(NamedTuple):
    """Numbers of messages and summaries of the conversation, and size of its context, after some messages.

    Attributes:
        messages: number of messages so far.
        context_tokens: number of tokens of the context.
        summaries: number of summaries, without those that a merge has replaced.
        uncompacted: number of these messages that no summary covers.
    """

    messages: int
    context_tokens: int
    summaries: int
    uncompacted: int


async def run(
    deployment: Deployment,
    *,
    messages: int = 500,
    step: int = 10,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Let a conversation grow, and ask for its context at regular steps.

    `messages` is the length to which the conversation grows, at least `GROWN`; `step` is the number of
    messages between two contexts.

    Returns:
        `growth`: the `Stage` after each step. `most_tokens` and `most_summaries`: maxima over all stages.
        `fewest_tokens_when_grown`: minimum over the stages from `GROWN` messages on. `gaps` and `overlaps`:
        numbers of gaps and of overlaps between the ranges of neighbouring summaries. `ratios`:
        `last_to_first_grown`, the tokens of the last stage over those of the first from `GROWN` messages on.
        `targets`: `TARGETS`.

    Raises:
        RuntimeError: a context has an error or lacks parts.
    """
    async with AsyncExitStack() as ends:
        connection = await ends.enter_async_context(await connect_deployment(deployment, name="bench"))
        await ends.enter_async_context(
            spawn_consumers(["persist", "index", "compact", "retrieve"], deployment)
        )
        await append_events(connection, list(_generate_facts()))
        said: list[int] = []
        stages: list[Stage] = []
        for first in range(0, messages, step):
            said += await publish_messages(connection, _generate_messages(first, min(step, messages - first)))
            await wait_for_summaries(connection, said[-1])
            await AppliedPosition("index").wait_for(connection.jetstream(), said[-1], INDEX_TIMEOUT)
            summaries = [each async for each in _read_summaries(connection)]
            live = _select_live_summaries(summaries)
            covered = max((each.to_seq for each in live), default=0)
            tokens = await _measure_tokens(connection, said[-1])
            stages.append(Stage(len(said), tokens, len(live), sum(seq > covered for seq in said)))
            report(f"{len(said)} messages: {tokens} tokens, {len(live)} summaries")
    written = sorted(
        (each for each in summaries if isinstance(each, SummaryWrittenV1)), key=lambda each: each.from_seq
    )
    between = [_count_messages_between(said, one.to_seq, other.from_seq) for one, other in pairwise(written)]
    return {
        "ratios": {
            "last_to_first_grown": round(
                stages[-1].context_tokens / next(s for s in stages if s.messages >= GROWN).context_tokens, 2
            )
        },
        "targets": TARGETS,
        "most_tokens": max(each.context_tokens for each in stages),
        "fewest_tokens_when_grown": min(each.context_tokens for each in stages if each.messages >= GROWN),
        "most_summaries": max(each.summaries for each in stages),
        "gaps": sum(each > 0 for each in between),
        "overlaps": sum(each < 0 for each in between),
        "growth": [each._asdict() for each in stages],
    }


def _generate_messages(first: int, count: int) -> Iterator[ChatEvent]:
    for number in range(first, first + count):
        sentences = make_fact(number * 2), make_question(number * 2 + 1)
        role = "assistant" if number % 2 else "user"
        yield ChatEvent(USER, MessageV1(role=role, content=". ".join(sentences)))


def _generate_facts() -> Iterator[LogEvent]:
    for number in range(KEY_FACTS):
        kept = Fact(text=make_fact(number * 1000), tier="profile", importance=9)
        saved = FactSavedV1(
            fact_id=f"pf_{number + 1:03}", fact=kept, decision=Decision(proposal_id=f"p{number}")
        )
        yield LogEvent(
            build_memory_subject(TENANT, USER, "fact.saved"), saved.encode_body(), f"bench-fact-{number}"
        )


async def _read_summaries(connection: Client) -> AsyncIterator[SummaryEvent]:
    async for _, _, event in read_events(connection, build_thing_filter(TENANT, USER, "summary"), 0):
        assert isinstance(event, SummaryEvent)
        yield event


def _select_live_summaries(summaries: list[SummaryEvent]) -> list[SummaryEvent]:
    merged = {name for each in summaries if isinstance(each, SummaryMergedV1) for name in each.merged}
    return [each for each in summaries if each.summary_id not in merged]


def _count_messages_between(positions: list[int], end: int, start: int) -> int:
    """Return the number of messages between two summaries; -1 if the summaries overlap.

    Args:
        positions: log positions of the messages.
        end: last log position that the earlier summary covers.
        start: first log position that the later summary covers.
    """
    return -1 if start <= end else sum(end < seq < start for seq in positions)


async def _measure_tokens(connection: Client, seq: int) -> int:
    body = json.dumps({"query": make_question(seq), "min_seq": seq}).encode()
    message = await connection.request(build_ask_subject(TENANT, USER, "context"), body, timeout=30)
    reply = ContextReplyV1.parse(message.data)
    if reply.error or reply.degraded or reply.tokens is None:
        raise RuntimeError(
            f"context at log position {seq} has an error or lacks parts: {message.data.decode()}; "
            "correct the cause if `error` names one, otherwise run the bench again on an idle machine"
        )
    return reply.tokens
