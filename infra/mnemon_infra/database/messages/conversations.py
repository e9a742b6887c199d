"""Queries on the rows of one conversation, for its erasure."""

from typing import Any, Final

from sqlalchemy import Select, func, select, text, union_all

from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.erasure_scope import EVERYWHERE, ErasedConversation
from mnemon_infra.database.engine import Connection, Statement, query
from mnemon_infra.database.erasure.predicates import (
    CONVERSATION_TABLES,
    PARAMETER_COLUMNS,
    bind_erasure,
    is_covered_by_parameters,
)
from mnemon_infra.database.projections import event_order as parts
from mnemon_infra.database.projections.event_order import bind_owner
from mnemon_infra.database.tables import IS_OPEN, batches, memory_events, messages, windows


def _select_event_ids() -> Select[Any]:
    scans = (
        select(table.c.event_id).where(is_covered_by_parameters(table)) for table in (messages, memory_events)
    )
    return select(func.coalesce(func.array_agg(union_all(*scans).subquery("its").c.event_id), _NO_TEXTS))


def _select_providers() -> Select[Any]:
    ids = func.coalesce(batches.c.provider_batch_id, batches.c.batch_id)
    its = (
        select(ids.label("id"))
        .join(windows, windows.c.batch_id == batches.c.batch_id)
        .where(is_covered_by_parameters(windows), text(IS_OPEN), ~windows.c.is_answered)
        .distinct()
        .subquery("its")
    )
    return select(func.coalesce(func.array_agg(its.c.id), _NO_TEXTS))


def _select_spans() -> Select[Any]:
    timeline = parts.select_timeline()
    spans = parts.select_spans(timeline)
    until = func.least(func.coalesce(func.upper(spans.c.span), EVERYWHERE), PARAMETER_COLUMNS["up_to"])
    begins = func.lower(spans.c.span)
    discards = select(func.max(timeline.c.seq)).where(
        timeline.c.conversation == PARAMETER_COLUMNS["conversation"],
        timeline.c.discard_previous,
        timeline.c.seq < PARAMETER_COLUMNS["up_to"],
    )
    its = (
        select(begins.label("begins"), until.label("ends"))
        .where(spans.c.conversation == PARAMETER_COLUMNS["conversation"], begins < until)
        .cte("its")
    )
    none = text("ARRAY[]::bigint[]")
    return select(
        func.coalesce(select(func.array_agg(its.c.begins)).scalar_subquery(), none),
        func.coalesce(select(func.array_agg(its.c.ends)).scalar_subquery(), none),
        discards.scalar_subquery(),
    )


_NO_TEXTS: Final = text("ARRAY[]::text[]")
_COUNTS: Final = {
    table.name: Statement(select(func.count()).select_from(table).where(is_covered_by_parameters(table)))
    for table in (*CONVERSATION_TABLES, windows)
}
_EVENT_IDS: Final = Statement(_select_event_ids())
_PROVIDERS: Final = Statement(_select_providers())
_SPANS: Final = Statement(_select_spans())
_POSITIONS: Final = Statement(
    select(func.coalesce(func.array_agg(messages.c.seq), text("ARRAY[]::bigint[]"))).where(
        is_covered_by_parameters(messages)
    )
)


@query
async def load_spans(
    connection: Connection, of: Owner, conversation: str, up_to: int
) -> tuple[list[tuple[int, int]], int | None]:
    """Return the spans of a conversation below a log position, and its last start that discarded."""
    wanted = bind_owner(*of) | {"conversation": conversation, "up_to": up_to}
    begins, ends, discarded = await _SPANS.fetch_row(connection, wanted)
    return sorted(zip(begins, ends, strict=True)), discarded


@query
async def list_message_positions(connection: Connection, erased: ErasedConversation) -> set[int]:
    """Return the log positions of the stored messages that an erasure covers."""
    found = await _POSITIONS.fetch_value(connection, bind_erasure(erased))
    return set(found)


@query
async def count_covered_rows(connection: Connection, erased: ErasedConversation) -> dict[str, int]:
    """Count the rows that an erasure covers, by table; tables without such rows are left out."""
    wanted = bind_erasure(erased)
    counts = {name: (await count.fetch_row(connection, wanted))[0] for name, count in _COUNTS.items()}
    return {name: count for name, count in counts.items() if count}


@query
async def list_event_ids(connection: Connection, erased: ErasedConversation) -> set[str]:
    """Return the ids of searchable events that an erasure covers."""
    found = await _EVENT_IDS.fetch_value(connection, bind_erasure(erased))
    return set(found)


@query
async def list_provider_batches(connection: Connection, erased: ErasedConversation) -> list[str]:
    """Return the providers' ids of open batches that hold windows which an erasure covers."""
    ids = await _PROVIDERS.fetch_value(connection, bind_erasure(erased))
    return sorted(ids)
