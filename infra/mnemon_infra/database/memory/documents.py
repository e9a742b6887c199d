"""Queries that derive documents from the rows of their events."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, select

from mnemon_contracts.events.memory import Origin
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, query
from mnemon_infra.database.query_parts.event_order import bind_owner
from mnemon_infra.database.query_parts.item_states import IS_WANTED, select_last_position, select_newest


class DocumentEntry(NamedTuple):
    """A document that was added and not removed since, without its text; documents sort by id."""

    id: str
    seq: int
    title: str | None
    source: str | None
    collection: str | None
    origin: Origin | None
    digest: str | None
    event_id: str


class StoredDocument(NamedTuple):
    """A document with its text, as it was last added."""

    id: str
    seq: int
    title: str | None
    source: str | None
    collection: str | None
    origin: Origin | None
    digest: str | None
    event_id: str
    text: str


def _select_documents(*only: ColumnElement[bool], text: bool) -> Select[Any]:
    last = select_newest(
        ("document.added",),
        ("document.removed",),
        *only,
        removed_seq=select_last_position("document.removed"),
    )
    fields = [last.c.body[name].astext for name in ("title", "source", "collection", "origin", "digest")]
    content = [last.c.body["text"].astext] if text else []
    return select(last.c.item, last.c.seq, *fields, last.c.event_id, *content).where(
        last.c.place == 1, last.c.event == "document.added", last.c.seq > last.c.removed_seq
    )


_ENTRIES = Lookup(_select_documents(text=False))
_BY_ID = Lookup(_select_documents(IS_WANTED, text=True))


@query
async def load_documents(connection: Connection, owners: Sequence[Owner]) -> list[list[DocumentEntry]]:
    """Return each user's documents without texts, sorted by id."""
    found = await _ENTRIES.fetch_each(connection, [bind_owner(*each) for each in owners])
    return [sorted(map(DocumentEntry._make, rows)) for rows in found]


@query
async def load_documents_by_id(
    connection: Connection, keys: Sequence[tuple[Owner, Sequence[str]]]
) -> list[list[StoredDocument]]:
    """Return each user's documents with these ids, texts included, sorted by id; missing ids are left out."""
    parameters = [bind_owner(*each) | {"items": list(ids)} for each, ids in keys]
    found = await _BY_ID.fetch_each(connection, parameters)
    return [sorted(map(StoredDocument._make, rows)) for rows in found]
