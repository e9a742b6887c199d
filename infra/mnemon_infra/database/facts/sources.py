"""Sources of facts: which facts were drawn from one conversation alone, or from discarded messages."""

from collections.abc import AsyncIterator, Collection
from contextlib import aclosing
from typing import NamedTuple

from nats.aio.client import Client

from mnemon_contracts.base import Event, InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.events.memory import (
    FactConfirmedV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    Lineage,
)
from mnemon_contracts.events.merging import FactMergedV1
from mnemon_contracts.subjects import InvalidSubject, Owner, thing_filter
from mnemon_infra.broker.streams.log_reader import pages
from mnemon_infra.database.projections.rows import read
from mnemon_infra.delivery import Delivery

_TOLD = FactSavedV1, FactUpdatedV1, FactConfirmedV1, FactMergedV1
"""What says of a fact where it was learned."""


class _Logged(NamedTuple):
    seq: int
    event_id: str
    event: Event


async def drawn_alone(
    connection: Client, owner: Owner, conversation: str, below: int, said: Collection[int]
) -> list[int]:
    """The log positions of the facts and proposals that nothing but a conversation taught.

    A fact that was learned or confirmed elsewhere, too, or changed by hand, is not one of them.

    Args:
        connection: where the log is.
        owner: whose.
        conversation: which.
        below: only what lies below this log position.
        said: where its messages are.

    Raises:
        nats.errors.Error: the log does not answer.
    """
    logged = [each async for each in _logged(connection, owner) if each.seq < below]

    def is_drawn(lineage: Lineage) -> bool:
        is_its = lineage.conversation == conversation
        return bool(lineage.sources) and all(
            each in said or (is_its and each < below) for each in lineage.sources
        )

    proposals = {
        each.event_id
        for each in logged
        if isinstance(each.event, FactProposedV1) and is_drawn(each.event.lineage)
    }
    told = [each.event for each in logged if isinstance(each.event, _TOLD)]
    elsewhere = {each.fact_id for each in told if not is_drawn(each.lineage)}
    facts = {each.fact_id for each in told} - elsewhere
    return [
        each.seq
        for each in logged
        if (isinstance(each.event, FactProposedV1) and each.event_id in proposals)
        or (isinstance(each.event, FactRejectedV1) and each.event.proposal_id in proposals)
        or (not isinstance(each.event, FactRejectedV1) and getattr(each.event, "fact_id", None) in facts)
    ]


async def drawn_below(connection: Client, owner: Owner, position: int) -> set[str]:
    """Find the facts that nothing but messages below a log position taught.

    A fact that was saved by a tool, imported, changed by hand, or merged with such a fact is not one of them.

    Raises:
        nats.errors.Error: the log does not answer.
    """
    events = [each.event async for each in _logged(connection, owner)]
    told = [event for event in events if isinstance(event, _TOLD)]
    elsewhere = {each.fact_id for each in told if max(each.lineage.sources, default=position) >= position}
    for each in told:
        if isinstance(each, FactMergedV1) and each.merged_id in elsewhere:
            elsewhere.add(each.fact_id)
    return {each.fact_id for each in told} - elsewhere


async def _logged(connection: Client, owner: Owner) -> AsyncIterator[_Logged]:
    async with aclosing(pages(connection, thing_filter(*owner, "fact"), 0)) as answers:
        async for page in answers:
            for delivery in page:
                if (logged := _logged_of(delivery)) is not None:
                    yield logged


def _logged_of(delivery: Delivery) -> _Logged | None:
    """What cannot be read is a dead letter."""
    try:
        _, event, event_id = read(delivery)
    except (InvalidSubject, UnknownEvent, InvalidBody):
        return None
    return _Logged(delivery.sequence, event_id, event)
