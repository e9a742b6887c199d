"""Sweep, which makes a user's points agree with the projections, so that removed content is not found."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from nats.aio.client import Client

from mnemon_consumers.index.decide import IndexedDocument
from mnemon_consumers.index.point_writer import build_document_items
from mnemon_contracts.events.memory import DocumentAddedV1
from mnemon_contracts.subjects import Owner, build_chat_filter, build_thing_filter
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_delivered_position
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.fact_repository import load_facts
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.database.memory.documents import StoredDocument, load_documents, load_documents_by_id
from mnemon_infra.database.memory.summaries import load_summaries
from mnemon_infra.database.messages.lookup import MessageLookup, load_visible_messages
from mnemon_infra.database.projections.sweep import load_last_message_watermark, load_last_watermark
from mnemon_infra.process.request_priority import yield_to_requests
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.vector_index import (
    SearchableItem,
    VectorIndex,
    build_fact_item,
    build_points,
    build_summary_item,
)

_LAST_POSITION: Final = 2**63 - 1
"""Upper bound of log positions."""


async def sweep_points(
    connection: Client, database: Database, vector_index: VectorIndex, owner: Owner, seq: int
) -> bool:
    """Sweep a user's points; return False if `persist` or `index` lacks events that the sweep needs.

    `seq` is the log position of the event that made the sweep necessary; 0 if it is unknown.

    Raises:
        DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable, nats.errors.Error: a server does not
            answer. The call has to be repeated later.
    """
    # While the lock is held, dedupe takes no decision on this user, so the log has all of its decisions.
    async with hold_lock(database, *owner):
        end = max(seq, await read_last_position(connection, *_list_removal_filters(owner)))
        if await read_applied_position(connection.jetstream()) < end:
            return False
        if await _may_index_removed_messages(connection, database, owner):
            return False
        await yield_to_requests()
        await _sweep_facts(database, vector_index, owner)
    await yield_to_requests()
    # Points are read before the position is checked. Then each live point has its row, so a point without a
    # row is obsolete. In the other order the row could be late.
    chunks = await _read_chunks(vector_index, owner)
    known_summaries = await _read_versions(vector_index, Collection.SUMMARIES, owner)
    position = await read_applied_position(connection.jetstream())
    written = [build_thing_filter(*owner, thing) for thing in ("document", "summary")]
    if position < await read_last_position(connection, *written):
        return False
    await _sweep_documents(database, vector_index, owner, chunks)
    await _sweep_summaries(database, vector_index, owner, known_summaries)
    if await load_last_watermark(database, *owner):
        await _sweep_messages(database, vector_index, owner, position)
    return True


async def _may_index_removed_messages(connection: Client, database: Database, owner: Owner) -> bool:
    """Return whether `index` may be writing points of messages below the user's last watermark.

    Such a point would remain after the sweep. If the event of the watermark was not delivered to `index` yet,
    its delivery leads to another sweep.
    """
    watermark = await load_last_message_watermark(database, *owner)
    if not watermark or await read_delivered_position(connection.jetstream(), "index") < watermark:
        return False
    return await read_applied_position(connection.jetstream(), "index") < watermark


def _list_removal_filters(owner: Owner) -> Iterator[str]:
    """Yield filters for the events that write or end facts, or clear, discard or erase content.

    The position in the sweep's trigger may be lower than that of the last such event: batches handled at the
    same time publish triggers in any order, and the server keeps only the last one published for each user.
    """
    yield from (build_thing_filter(*owner, "fact"), build_thing_filter(*owner, "user"))
    yield from (build_chat_filter(*owner, "cleared"), build_chat_filter(*owner, "started"))


async def reconcile_points(database: Database, vector_index: VectorIndex, owner: Owner) -> None:
    """Write missing and outdated points of a user's facts and summaries, and delete all obsolete points.

    Missing points of messages are not written; those of a document are written only if the document has an
    obsolete point. No other process may write points or rows during the call.

    Raises:
        DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable: a server does not answer. A part of the
            points may be written or deleted.
    """
    await _sweep_facts(database, vector_index, owner)
    await _sweep_documents(database, vector_index, owner, await _read_chunks(vector_index, owner))
    await _sweep_summaries(
        database, vector_index, owner, await _read_versions(vector_index, Collection.SUMMARIES, owner)
    )
    if await load_last_watermark(database, *owner):
        await _sweep_messages(database, vector_index, owner, _LAST_POSITION)


async def _sweep_facts(database: Database, vector_index: VectorIndex, owner: Owner) -> None:
    (facts,) = await database.run_query(load_facts([owner]))
    live = [build_fact_item(owner, each.id, each.event_id, each.text) for each in facts]
    known = await _read_versions(vector_index, Collection.MEMORIES, owner)
    await _reconcile_collection(vector_index, Collection.MEMORIES, owner, live, known)


async def _sweep_summaries(
    database: Database, vector_index: VectorIndex, owner: Owner, known: Mapping[UUID, object]
) -> None:
    (summaries,) = await database.run_query(load_summaries([owner]))
    live = [build_summary_item(owner, each.id, each.event_id, each.text) for each in summaries]
    await _reconcile_collection(vector_index, Collection.SUMMARIES, owner, live, known)


async def _read_versions(
    vector_index: VectorIndex, collection: Collection, owner: Owner
) -> dict[UUID, object]:
    """Return the user's points of a collection, each with the id of the event that wrote its version."""
    known: dict[UUID, object] = {}
    async for page in vector_index.vectors.scroll(collection, owner):
        known |= {stored.id: stored.payload.get("event_id") for stored in page}
    return known


async def _reconcile_collection(
    vector_index: VectorIndex,
    collection: Collection,
    owner: Owner,
    live: Sequence[SearchableItem],
    known: Mapping[UUID, object],
) -> None:
    """Write the points of live items that are missing or outdated, and delete points without a live item.

    Args:
        vector_index: the vector index.
        collection: the collection of the points.
        owner: the user.
        live: all items of the user that should have a point in the collection.
        known: the user's points in the collection, as `_read_versions` returns them.
    """
    absent = [each for each in live if known.get(each.id) != each.payload["event_id"]]
    await vector_index.vectors.upsert(collection, await build_points(vector_index, absent))
    await _delete_points(vector_index, collection, owner, known.keys() - {each.id for each in live})


class _ChunkSource(NamedTuple):
    """Document of a chunk, and id of the event that wrote the document's version."""

    document_id: str
    event_id: str


async def _read_chunks(vector_index: VectorIndex, owner: Owner) -> dict[UUID, _ChunkSource]:
    """Return the sources of the user's chunks, by the ids of the chunks' points."""
    found: dict[UUID, _ChunkSource] = {}
    async for page in vector_index.vectors.scroll(Collection.DOCUMENTS, owner):
        for stored in page:
            payload = stored.payload
            found[stored.id] = _ChunkSource(str(payload["document_id"]), str(payload["event_id"]))
    return found


async def _sweep_documents(
    database: Database, vector_index: VectorIndex, owner: Owner, chunks: Mapping[UUID, _ChunkSource]
) -> None:
    (entries,) = await database.run_query(load_documents([owner]))
    live = {each.event_id for each in entries}
    gone = {point_id: chunk.document_id for point_id, chunk in chunks.items() if chunk.event_id not in live}
    await _delete_points(vector_index, Collection.DOCUMENTS, owner, gone)
    # The older of two versions in quick succession may have overwritten the newer version.
    changed = sorted({each.id for each in entries} & set(gone.values()))
    (whole,) = await database.run_query(load_documents_by_id([(owner, changed)]))
    current = chunks.keys() - gone.keys()
    read = [
        chunk for each in whole for chunk in await build_document_items(_build_indexed_document(owner, each))
    ]
    absent = [chunk for chunk in read if chunk.id not in current]
    await vector_index.vectors.upsert(Collection.DOCUMENTS, await build_points(vector_index, absent))


def _build_indexed_document(owner: Owner, stored: StoredDocument) -> IndexedDocument:
    added = DocumentAddedV1(
        document_id=stored.id,
        text=stored.text,
        title=stored.title,
        source=stored.source,
        collection=stored.collection,
        origin=stored.origin,
    )
    return IndexedDocument(owner, stored.event_id, added)


async def _sweep_messages(database: Database, vector_index: VectorIndex, owner: Owner, position: int) -> None:
    """Remove the points of hidden messages, up to the log position `position`.

    Points beyond it stay, because the rows of their messages may still be missing.
    """
    async for page in vector_index.vectors.scroll(Collection.MESSAGES, owner):
        settled = [stored for stored in page if int(str(stored.payload["seq"])) <= position]
        point_ids = {str(stored.payload["event_id"]): stored.id for stored in settled}
        (shown,) = await database.run_query(load_visible_messages([MessageLookup(*owner, tuple(point_ids))]))
        gone = point_ids.keys() - {row.event_id for row in shown}
        await _delete_points(
            vector_index, Collection.MESSAGES, owner, [point_ids[event_id] for event_id in gone]
        )


async def _delete_points(
    vector_index: VectorIndex, collection: Collection, owner: Owner, ids: Iterable[UUID]
) -> None:
    if gone := list(ids):
        await vector_index.vectors.delete(collection, owner, gone)
