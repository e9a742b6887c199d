"""Pairs of facts that dedupe has left undecided, and the answers of models about them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, exists, func, or_, select, text
from sqlalchemy.dialects.postgresql import JSONB

from mnemon_contracts.fact_pairs import FactPair
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import VERSIONS, has_name
from mnemon_infra.database.tables import memory_events as events

_BATCH: Final = make_parameter("of_batch", str)
_PAIRS: Final = text("'$.windows[*].pairs[*]'")
_ENDED: Final = ("batch.completed", "batch.failed")


PairsByLine = Mapping[tuple[Owner, int], Sequence[FactPair]]
"""The pairs that a batch asks about, by user and line number in the batch."""


class OpenedPairs(NamedTuple):
    """Pairs that dedupe left undecided when it wrote a fact; instances sort by log position.

    Attributes:
        seq: log position of the event that wrote the fact.
        version: id of the event that wrote the fact.
        undecided: ids of the facts that may say the same as this fact.
    """

    seq: int
    fact_id: str
    version: str
    undecided: tuple[str, ...]


@dataclass(slots=True)
class PairRecord:
    """State of a user's undecided pairs, from the rows of events.

    Attributes:
        opened: the facts with undecided pairs, oldest first.
        merged: for the id of each merged fact, the id of the fact that it was merged into.
        merges: event ids of the merges.
        answered: pairs for which a model has given a relation.
        unanswered: pairs that a model was asked about and did not answer, once for each attempt.
        asked: pairs that open batches ask about, except the batch that is about to be submitted.
    """

    opened: list[OpenedPairs] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    merges: set[str] = field(default_factory=set)
    answered: set[FactPair] = field(default_factory=set)
    unanswered: list[FactPair] = field(default_factory=list)
    asked: set[FactPair] = field(default_factory=set)


def _select_opened() -> Select[Any]:
    undecided = events.c.body["decision"]["undecided"]
    is_open = func.coalesce(func.jsonb_array_length(undecided), 0) > 0
    return select(
        events.c.seq, events.c.event_id, events.c.item, undecided, events.c.body["merged_id"].astext
    ).where(
        is_owned(events),
        has_name(VERSIONS),
        events.c.body.isnot(None),
        or_(is_open, events.c.event == "fact.merged"),
    )


def _select_compared() -> Select[Any]:
    return select(events.c.body).where(is_owned(events), events.c.event == "fact.compared")


def _select_asked() -> Select[Any]:
    ended = events.alias("ended")
    is_over = exists().where(is_owned(ended), has_name(_ENDED, ended), ended.c.item == events.c.item)
    pairs = func.jsonb_path_query_array(events.c.body, _PAIRS, type_=JSONB)
    return select(pairs).where(
        is_owned(events),
        events.c.event == "batch.intended",
        events.c.item != _BATCH,
        events.c.body.isnot(None),
        ~is_over,
    )


_OPENED = Lookup(_select_opened())
_COMPARED = Lookup(_select_compared())
_ASKED = Lookup(_select_asked())
_INTENDED = Lookup(
    select(events.c.body).where(
        is_owned(events),
        events.c.event == "batch.intended",
        events.c.item == _BATCH,
        events.c.body.isnot(None),
    )
)


@query
async def load_pair_records(
    connection: Connection, owners: Iterable[Owner], batch_id: str | None = None
) -> dict[Owner, PairRecord]:
    """Load the undecided pairs of users; a user with neither undecided pairs nor merges has no record.

    `batch_id` is the batch that is about to be submitted: its pairs do not count as asked, unless another
    open batch asks about them, too. With None, the pairs of all open batches count.
    """
    each = list(dict.fromkeys(owners))
    opened = await _OPENED.fetch_each(connection, [bind_owner(*one) for one in each])
    records = {one: _make_record(rows) for one, rows in zip(each, opened, strict=True) if rows}
    wanted = [bind_owner(*one) | {"of_batch": batch_id or ""} for one in records]
    compared = await _COMPARED.fetch_each(connection, wanted) if records else []
    asked = await _ASKED.fetch_each(connection, wanted) if records else []
    for record, answers, batches in zip(records.values(), compared, asked, strict=True):
        for (body,) in answers:
            pair = FactPair.model_validate(body)
            if body.get("relation"):
                record.answered.add(pair)
            else:
                record.unanswered.append(pair)
        record.asked = {FactPair.model_validate(pair) for (pairs,) in batches for pair in pairs}
    return records


@query
async def load_batch_pairs(connection: Connection, batch_id: str, owners: Iterable[Owner]) -> PairsByLine:
    """Load the pairs that a batch asks about, by user and line number in the batch."""
    each = list(dict.fromkeys(owners))
    wanted = [bind_owner(*one) | {"of_batch": batch_id} for one in each]
    found = await _INTENDED.fetch_each(connection, wanted)
    return {
        (one, window["line"]): [FactPair.model_validate(pair) for pair in window["pairs"]]
        for one, rows in zip(each, found, strict=True)
        for (body,) in rows
        for window in body["windows"]
        if window.get("line") is not None and window.get("pairs")
    }


def _make_record(rows: Iterable[tuple[Any, ...]]) -> PairRecord:
    record = PairRecord()
    for seq, event_id, item, undecided, merged_id in rows:
        if undecided:
            record.opened.append(OpenedPairs(seq, item, event_id, tuple(undecided)))
        if merged_id is not None:
            record.merged[merged_id] = item
            record.merges.add(event_id)
    record.opened.sort()
    return record
