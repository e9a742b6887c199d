"""Derived memory in the demo: summaries of messages, and facts extracted from them."""

import asyncio
from collections import Counter
from typing import Final

from nats.aio.client import Client
from nats.js import JetStreamContext
from tenacity import retry, retry_if_result, wait_fixed

from mnemon.demo.report import DerivedMemory, ExtractedFact, ModelCalls
from mnemon.demo.sample import USERS
from mnemon_consumers.app import run_consumers
from mnemon_contracts.decode import decode_event
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import (
    FactConfirmedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    ModelCalledV2,
    SummaryMergedV1,
    SummaryWrittenV1,
)
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction, Extraction, Provider
from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import build_event_filter, build_thing_filter, parse_subject
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_log_end
from mnemon_infra.broker.streams.log_reader import read_events, read_last_position
from mnemon_infra.config import Deployment
from mnemon_infra.settings.store import write_settings

MODEL_CONSUMERS: Final = ("compact", "extract")
"""The consumers that ask a language model."""

_TRIGGERS: Final = ("work.compact.>", "work.extract.>", "schedule.extract.>")
_DECISIONS: Final = FactSavedV1 | FactUpdatedV1 | FactConfirmedV1 | FactRejectedV1

LEARNING_TIMEOUT: Final = 300.0
"""Seconds for reading all conversations: the model may run on this machine."""


class NotDerived(Exception):
    """The consumers did not read all messages, or did not decide on all proposals, in time."""


async def derive_memory(
    connection: Client, tenant: str, deployment: Deployment, model: str | None
) -> DerivedMemory:
    """Let the consumers read all messages with a model, or with built-in rules if `model` is None.

    For this, write the model to the settings. Return the memory that the consumers derived.

    Raises:
        NotDerived: the consumers do not finish within `LEARNING_TIMEOUT` seconds.
    """
    provider: Provider = "offline" if model is None else "openai"
    settings = SettingsV1(
        extraction=Extraction(provider=provider, model=model, mode="online", idle_seconds=1),
        compaction=Compaction(provider=provider, model=model),
    )
    await write_settings(connection, settings)
    before = await read_log_end(connection.jetstream())
    try:
        async with asyncio.timeout(LEARNING_TIMEOUT), run_consumers(MODEL_CONSUMERS, deployment):
            await _wait_for_decisions(connection)
    except TimeoutError as error:
        next_step = (
            "run the demo again when the machine is less busy"
            if model is None
            else "choose a faster model, or run the demo without --model and MNEMON_MODEL"
        )
        raise NotDerived(
            "the consumers did not handle all messages and proposals within"
            f" {LEARNING_TIMEOUT:.0f} s; {next_step}"
        ) from error
    drawn, decisions = await _load_extracted(connection, tenant, before)
    return DerivedMemory(
        model=model,
        summaries={user: await _load_summaries(connection, tenant, user) for user in USERS},
        facts=drawn,
        decisions=decisions,
        model_calls=await _sum_model_calls(connection, before),
        seq=await read_log_end(connection.jetstream()),
    )


async def _wait_for_decisions(connection: Client) -> None:
    """Wait until the consumers have read all messages and `dedupe` has decided on all proposals."""
    stream_context = connection.jetstream()
    await _wait_for_triggers(stream_context)
    proposed = await read_last_position(connection, build_event_filter("fact.proposed"))
    await AppliedPosition("dedupe").wait_for(stream_context, proposed, LEARNING_TIMEOUT)


@retry(wait=wait_fixed(0.02), retry=retry_if_result(bool))
async def _wait_for_triggers(stream_context: JetStreamContext) -> bool:
    """Return whether triggers wait to be handled; the decorator repeats the call until no trigger waits."""
    waiting = [await stream_context.stream_info(WORK, subjects_filter=pattern) for pattern in _TRIGGERS]
    return any(each.state.subjects for each in waiting)


async def _load_summaries(connection: Client, tenant: str, user: str) -> list[str]:
    """Return the summaries that were not merged into another summary, oldest first."""
    summaries: dict[str, str] = {}
    async for _, _, event in read_events(connection, build_thing_filter(tenant, user, "summary"), 0):
        if isinstance(event, SummaryMergedV1):
            for merged in event.merged:
                summaries.pop(merged, None)
        assert isinstance(event, SummaryMergedV1 | SummaryWrittenV1)
        summaries[event.summary_id] = event.text
    return list(summaries.values())


async def _load_extracted(
    connection: Client, tenant: str, after: int
) -> tuple[list[ExtractedFact], Counter[str]]:
    """Return facts and decisions after the log position `after`.

    The result is each new fact with its first source message, and the number of decisions by outcome.
    """
    drawn: list[ExtractedFact] = []
    decisions: Counter[str] = Counter()
    for user in USERS:
        async for _, address, event in read_events(
            connection, build_thing_filter(tenant, user, "fact"), after
        ):
            if isinstance(event, _DECISIONS):
                decisions[address.name.removeprefix("fact.")] += 1
            if isinstance(event, FactSavedV1):
                source = await _load_source(connection, event.lineage.sources)
                drawn.append(ExtractedFact(user, event.fact_id, event.fact.text, source))
    return drawn, decisions


async def _load_source(connection: Client, sources: tuple[int, ...]) -> MessageV1 | None:
    if not sources:
        return None
    message = await connection.jetstream().get_msg(LOG, seq=sources[0], direct=True)
    event = decode_event(parse_subject(message.subject or ""), message.data or b"")
    return event if isinstance(event, MessageV1) else None


async def _sum_model_calls(connection: Client, after: int) -> dict[str, ModelCalls]:
    """Return the calls and tokens of models after the log position `after`, by purpose."""
    spent: dict[str, ModelCalls] = {}
    async for _, _, event in read_events(connection, build_event_filter("model.called"), after):
        assert isinstance(event, ModelCalledV2)
        known = spent.get(event.purpose, ModelCalls(f"{event.provider}/{event.model}"))
        spent[event.purpose] = known._replace(
            calls=known.calls + 1,
            input_tokens=known.input_tokens + event.tokens.input,
            output_tokens=known.output_tokens + event.tokens.output,
        )
    return spent
