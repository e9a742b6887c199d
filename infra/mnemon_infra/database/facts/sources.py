"""Sources of facts: lookup of facts that come from one conversation alone, or from discarded messages."""

from collections.abc import Collection

from nats.aio.client import Client

from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import (
    FactConfirmedV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    Lineage,
)
from mnemon_contracts.subjects import Owner, build_thing_filter
from mnemon_infra.database.projections.logged_events import stream_events

_LINEAGE_EVENTS = FactSavedV1, FactUpdatedV1, FactConfirmedV1, FactMergedV1
"""Events that carry the lineage of a fact."""


async def find_events_from_conversation(
    connection: Client, owner: Owner, conversation: str, below: int, seqs: Collection[int]
) -> list[int]:
    """Return the log positions of facts and proposals whose only source is one conversation.

    A fact is left out if an event of it names another source, or none: a tool saved or confirmed the fact, an
    import added it, the verb `update` changed it, or a fact without sources was merged into it.

    `seqs` are the log positions of the conversation's messages. Only events below the position `below` count.

    Returns:
        The positions of all events of these facts, of these proposals, and of their rejections.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    logged = [
        each
        async for each in stream_events(connection, build_thing_filter(*owner, "fact"))
        if each.seq < below
    ]

    def comes_from_conversation(lineage: Lineage) -> bool:
        is_its = lineage.conversation == conversation
        return bool(lineage.sources) and all(
            each in seqs or (is_its and each < below) for each in lineage.sources
        )

    proposals = {
        each.id
        for each in logged
        if isinstance(each.event, FactProposedV1) and comes_from_conversation(each.event.lineage)
    }
    lineage_events = [each.event for each in logged if isinstance(each.event, _LINEAGE_EVENTS)]
    kept = {each.fact_id for each in lineage_events if not comes_from_conversation(each.lineage)}
    facts = {each.fact_id for each in lineage_events} - kept
    return [
        each.seq
        for each in logged
        if (isinstance(each.event, FactProposedV1) and each.id in proposals)
        or (isinstance(each.event, FactRejectedV1) and each.event.proposal_id in proposals)
        or (not isinstance(each.event, FactRejectedV1) and getattr(each.event, "fact_id", None) in facts)
    ]


async def find_facts_sourced_below(connection: Client, owner: Owner, position: int) -> set[str]:
    """Return the ids of the facts whose sources are all messages below a log position.

    A fact is left out if it was saved or confirmed by a tool, imported, or changed by the verb `update`, or
    if a fact that is left out was merged into it.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    events = [each.event async for each in stream_events(connection, build_thing_filter(*owner, "fact"))]
    lineage_events = [event for event in events if isinstance(event, _LINEAGE_EVENTS)]
    kept = {
        each.fact_id for each in lineage_events if max(each.lineage.sources, default=position) >= position
    }
    for each in lineage_events:
        if isinstance(each, FactMergedV1) and each.merged_id in kept:
            kept.add(each.fact_id)
    return {each.fact_id for each in lineage_events} - kept
