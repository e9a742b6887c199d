"""`save`: propose a fact and reply with the decision about it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.verbs.facts.view import convert_importance
from mnemon_consumers.retrieve.verbs.request_context import await_reply, await_visibility, identify_event
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.base import Event, InvalidBody
from mnemon_contracts.decode import UnknownEvent, decode_event
from mnemon_contracts.events.memory import (
    FactConfirmedV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    Lineage,
)
from mnemon_contracts.subjects import Address, InvalidSubject, build_thing_filter, parse_subject
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import SaveReplyV1, SaveV1
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.service import Refusal, get_request_id
from mnemon_infra.broker.streams.log_reader import read_event_pages

DECISION_TIMEOUT: Final = 5.0
"""Maximum wait for a decision, in seconds."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.5


class SaveVerb:
    """Answers `save`: proposes facts and waits for the decisions of dedupe."""

    def __init__(self, broker: Broker, memory: Memory, log: UserLog) -> None:
        self._broker = broker
        self._memory = memory
        self._log = log

    def save(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = SaveV1.parse(body)
        proposal = FactProposedV1.create_strict(
            text=request.text,
            kind=request.kind,
            tier=request.tier,
            importance=convert_importance(request.importance),
            expires_at=request.expires_at,
            lineage=Lineage(extractor="tool"),
        )

        async def propose() -> Reply:
            connection = self._broker.connection
            pattern = build_thing_filter(address.tenant, address.user, "fact")
            proposal_id = identify_event(address)
            async with _watch_publications(connection, pattern) as woken:
                position = await self._log.publish_event(address, proposal, proposal_id)
                if get_request_id() is not None:
                    position = 0  # the decision on an earlier copy of the request is before this copy
                seq, reply = await _wait_for_decision(connection, pattern, proposal_id, position, woken)
            await await_visibility(self._memory.load_facts(address.owner, seq))
            return reply

        return await_reply(propose())


@asynccontextmanager
async def _watch_publications(connection: Client, pattern: str) -> AsyncIterator[asyncio.Event]:
    """Yield an `asyncio.Event`, which is set by each message on `pattern`, just before the log stores it."""
    woken = asyncio.Event()

    async def wake(_: Msg) -> None:
        woken.set()

    subscription = await connection.subscribe(pattern, cb=wake)
    try:
        yield woken
    finally:
        await subscription.unsubscribe()


async def _wait_for_decision(
    connection: Client, pattern: str, proposal_id: str, position: int, woken: asyncio.Event
) -> tuple[int, SaveReplyV1]:
    pause = _FIRST_PAUSE
    with suppress(TimeoutError):
        async with asyncio.timeout(DECISION_TIMEOUT):
            while True:
                # nats-py's TimeoutError is also Python's: it must not end the wait for the decision.
                with suppress(nats.errors.TimeoutError):
                    async with aclosing(read_event_pages(connection, pattern, position)) as answers:
                        async for page in answers:
                            for delivery in page:
                                position = delivery.sequence
                                decision = _read_decision(delivery.subject, delivery.body, proposal_id)
                                if decision is not None:
                                    return position, decision.model_copy(update={"seen_seq": position})
                if woken.is_set():
                    pause = _FIRST_PAUSE
                woken.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
    raise Refusal(
        "unavailable",
        f"dedupe did not decide within {DECISION_TIMEOUT:.0f} s, but decides later; save the fact again to "
        "get a decision: a fact is kept only once",
        retryable=True,
    )


def _read_decision(subject: str, body: bytes, proposal_id: str) -> SaveReplyV1 | None:
    try:
        event = decode_event(parse_subject(subject), body)
    except (InvalidSubject, UnknownEvent, InvalidBody):
        return None
    return _build_reply(event, proposal_id)


def _build_reply(event: Event, proposal_id: str) -> SaveReplyV1 | None:
    match event:
        case FactRejectedV1(proposal_id=known) if known == proposal_id:
            reason = event.detail or event.reason
            return SaveReplyV1(decision="rejected", id=event.fact_id, reason=reason, rule=event.reason)
        case FactSavedV1(decision=decision) if decision.proposal_id == proposal_id:
            return SaveReplyV1(decision="saved", id=event.fact_id)
        case FactConfirmedV1(decision=decision) if decision.proposal_id == proposal_id:
            return SaveReplyV1(decision="confirmed", id=event.fact_id)
        case FactUpdatedV1(decision=decision) if decision and decision.proposal_id == proposal_id:
            return SaveReplyV1(decision="updated", id=event.fact_id)
    return None
