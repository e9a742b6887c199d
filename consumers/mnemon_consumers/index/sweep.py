"""Brings a user's points to what the projections say: what is gone there is found no more."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from nats.aio.client import Client

from mnemon_consumers.index.decide import IndexedDocument
from mnemon_consumers.index.point_writer import document
from mnemon_contracts.events.memory import DocumentAddedV1
from mnemon_contracts.subjects import Owner, chat_filter, thing_filter
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.broker.streams.log_reader import last_position
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.users import last_erased
from mnemon_infra.database.facts.fact_repository import live_facts
from mnemon_infra.database.locks import locked
from mnemon_infra.database.memory.documents import StoredDocument, documents, documents_by_id
from mnemon_infra.database.memory.summaries import live_summaries
from mnemon_infra.database.messages.lookup import MessageLookup, visible
from mnemon_infra.database.projections.sweep import last_watermark
from mnemon_infra.process.request_priority import give_way
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.vector_index import Findable, VectorIndex, fact, points, summary

_ALL: Final = 2**63 - 1
"""No log position is beyond."""


async def sweep(connection: Client, database: Database, finding: VectorIndex, owner: Owner, seq: int) -> bool:
    """Look through the user's points; False when the projections are not that far yet.

    Raises:
        DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable: later, perhaps.
    """
    # Under the lock nothing is decided: what dedupe has found room for is in the log, or never was.
    async with locked(database, *owner):
        end = max(seq, *await asyncio.gather(*(last_position(connection, each) for each in _taking(owner))))
        if await applied_position(connection.jetstream()) < end:
            return False
        # What is being indexed from before an erasure would be there after it.
        erased = await database.read(last_erased(*owner))
        if erased and await applied_position(connection.jetstream(), "index") < erased:
            return False
        await give_way()
        await _facts(database, finding, owner)
    await give_way()
    # In this order: of what is found here the rows are there by then. Without one, it is not gone for that.
    chunks = await _chunks(finding, owner)
    known_summaries = await _versions(finding, Collection.SUMMARIES, owner)
    position = await applied_position(connection.jetstream())
    written = [thing_filter(*owner, thing) for thing in ("document", "summary")]
    if position < max(await asyncio.gather(*(last_position(connection, each) for each in written))):
        return False
    await _documents(database, finding, owner, chunks)
    await _summaries(database, finding, owner, known_summaries)
    if await last_watermark(database, *owner):
        await _messages(database, finding, owner, position)
    return True


def _taking(owner: Owner) -> Iterator[str]:
    """What matches all that takes something of a user's away, or changes a fact.

    Whoever asked for this look may have come before: of two triggers, the one that was published last stays.
    """
    yield from (thing_filter(*owner, "fact"), thing_filter(*owner, "user"))
    yield from (chat_filter(*owner, "cleared"), chat_filter(*owner, "started"))


async def look_through(database: Database, finding: VectorIndex, owner: Owner) -> None:
    """Bring a user's points to what the projections say now, where nobody else writes either.

    Raises:
        DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable: part of it is done.
    """
    await _facts(database, finding, owner)
    await _documents(database, finding, owner, await _chunks(finding, owner))
    await _summaries(database, finding, owner, await _versions(finding, Collection.SUMMARIES, owner))
    if await last_watermark(database, *owner):
        await _messages(database, finding, owner, _ALL)


async def _facts(database: Database, finding: VectorIndex, owner: Owner) -> None:
    (facts,) = await database.read(live_facts([owner]))
    live = [fact(owner, each.id, each.event_id, each.text) for each in facts]
    known = await _versions(finding, Collection.MEMORIES, owner)
    await _level(finding, Collection.MEMORIES, owner, live, known)


async def _summaries(
    database: Database, finding: VectorIndex, owner: Owner, known: Mapping[UUID, object]
) -> None:
    (summaries,) = await database.read(live_summaries([owner]))
    live = [summary(owner, each.id, each.event_id, each.text) for each in summaries]
    await _level(finding, Collection.SUMMARIES, owner, live, known)


async def _versions(finding: VectorIndex, collection: Collection, owner: Owner) -> dict[UUID, object]:
    """The user's points of a collection, each with the event that made this version of it."""
    known: dict[UUID, object] = {}
    async for page in finding.vectors.scroll(collection, owner):
        known |= {stored.id: stored.payload.get("event_id") for stored in page}
    return known


async def _level(
    finding: VectorIndex,
    collection: Collection,
    owner: Owner,
    live: Sequence[Findable],
    known: Mapping[UUID, object],
) -> None:
    """Write the points that are missing, or of another version, and remove those of what is gone."""
    absent = [each for each in live if known.get(each.id) != each.payload["event_id"]]
    await finding.vectors.upsert(collection, await points(finding, absent))
    await _delete(finding, collection, owner, known.keys() - {each.id for each in live})


class _Chunk(NamedTuple):
    """What a chunk is of: the document, and the version of it."""

    document_id: str
    event_id: str


async def _chunks(finding: VectorIndex, owner: Owner) -> dict[UUID, _Chunk]:
    """What the user's chunks of documents are of."""
    found: dict[UUID, _Chunk] = {}
    async for page in finding.vectors.scroll(Collection.DOCUMENTS, owner):
        for stored in page:
            payload = stored.payload
            found[stored.id] = _Chunk(str(payload["document_id"]), str(payload["event_id"]))
    return found


async def _documents(
    database: Database, finding: VectorIndex, owner: Owner, chunks: Mapping[UUID, _Chunk]
) -> None:
    (entries,) = await database.read(documents([owner]))
    live = {each.event_id for each in entries}
    gone = {place: chunk.document_id for place, chunk in chunks.items() if chunk.event_id not in live}
    await _delete(finding, Collection.DOCUMENTS, owner, gone)
    # Of two versions that come close together, the older may have been written over the newer.
    changed = sorted({each.id for each in entries} & set(gone.values()))
    (whole,) = await database.read(documents_by_id([(owner, changed)]))
    there = chunks.keys() - gone.keys()
    read = [chunk for each in whole for chunk in await document(_read(owner, each))]
    absent = [chunk for chunk in read if chunk.id not in there]
    await finding.vectors.upsert(Collection.DOCUMENTS, await points(finding, absent))


def _read(owner: Owner, stored: StoredDocument) -> IndexedDocument:
    added = DocumentAddedV1(
        document_id=stored.id,
        text=stored.text,
        title=stored.title,
        source=stored.source,
        collection=stored.collection,
        origin=stored.origin,
    )
    return IndexedDocument(owner, stored.event_id, added)


async def _messages(database: Database, finding: VectorIndex, owner: Owner, position: int) -> None:
    """Remove what is not to be shown. The rows of what is beyond the position may be still to come."""
    async for page in finding.vectors.scroll(Collection.MESSAGES, owner):
        there = [stored for stored in page if int(str(stored.payload["seq"])) <= position]
        places = {str(stored.payload["event_id"]): stored.id for stored in there}
        (shown,) = await database.read(visible([MessageLookup(*owner, tuple(places))]))
        gone = places.keys() - {row.event_id for row in shown}
        await _delete(finding, Collection.MESSAGES, owner, [places[event_id] for event_id in gone])


async def _delete(finding: VectorIndex, collection: Collection, owner: Owner, ids: Iterable[UUID]) -> None:
    if gone := list(ids):
        await finding.vectors.delete(collection, owner, gone)
