"""Check that every searchable item has its points, and that no removed item has points."""

from collections import Counter
from collections.abc import Collection as Some
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import NamedTuple
from uuid import UUID

from nats.aio.client import Client

from mnemon.operations.audit.ledger import AuditFaults, CollectionAudit, PositionSet
from mnemon_consumers.index.document_chunks import split_chunks
from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.triggers import has_waiting_sweep
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory.indexable import (
    IndexableItem,
    find_indexable_events,
    stream_indexable_items,
)
from mnemon_infra.database.memory.summaries import load_summaries_by_id
from mnemon_infra.database.messages.lookup import MessageLookup, load_visible_messages
from mnemon_infra.vectors.edge.owner import MOST
from mnemon_infra.vectors.port import Collection, Point, PointPages


class _ExpectedPoint(NamedTuple):
    """A point that must exist: a document has a point for each chunk, any other item has one point."""

    id: UUID
    event_id: str


class VectorAudit:
    """Comparison of points with rows.

    `dead` are the log positions of events with a dead letter of `persist`; such an event may still have a
    point.
    """

    def __init__(
        self, connection: Client, database: Database, pages: PointPages, dead: Some[int], faults: AuditFaults
    ) -> None:
        self._connection = connection
        self._database = database
        self._pages = pages
        self._dead = dead
        self._faults = faults

    async def examine_points(self) -> Mapping[Collection, CollectionAudit]:
        """Compare all points with the rows of handled events; record faults; return counts by collection.

        Raises:
            DatabaseUnavailable, VectorsUnavailable, nats.errors.Error: a server does not answer.
        """
        # Read the positions first: events up to them have their points when the points are read.
        stream_context = self._connection.jetstream()
        up_to = min(
            await read_applied_position(stream_context, "index"), await read_applied_position(stream_context)
        )
        return {each: await self._examine_collection(each, up_to) for each in Collection}

    async def _examine_collection(self, collection: Collection, up_to: int) -> CollectionAudit:
        found = CollectionAudit()
        met = PositionSet(up_to)
        pieces: Counter[int] = Counter()
        begin: UUID | None = None
        while True:
            page = await self._pages.read_page(collection, begin, MOST)
            found.points += len(page.points)
            rows = await find_indexable_events(
                self._database, collection, [(each.owner, _get_event_id(each)) for each in page.points]
            )
            for point in page.points:
                seq = rows.get((point.owner, _get_event_id(point)))
                if seq is None:
                    await self._judge_point(collection, point, found)
                elif collection is Collection.DOCUMENTS:
                    pieces[seq] += 1
                elif seq <= up_to:
                    met.add(seq)
            if page.following is None:
                break
            begin = page.following
        async with aclosing(stream_indexable_items(self._database, collection, up_to)) as some:
            async for shown in some:
                for each in shown:
                    found.shown += 1
                    if collection is Collection.DOCUMENTS:
                        if pieces[each.seq] != len(list(_list_expected_points(collection, each))):
                            await self._judge_row(collection, each, found)
                    elif each.seq not in met:
                        await self._judge_row(collection, each, found)
        return found

    async def _judge_point(self, collection: Collection, point: Point, audit: CollectionAudit) -> None:
        """Count a point without a row if a dead letter or a pending sweep explains it; else add a fault.

        Before the fault is added, point and row are read again. If a sweep has removed the point meanwhile,
        or the row exists by now, there is no fault.
        """
        seq = int(str(point.payload.get("seq", 0)))
        if seq in self._dead:
            audit.dead += 1
        elif await self._is_sweep_pending(point.owner):
            audit.waiting += 1
        elif await self._has_point(
            collection, point.id, _get_event_id(point)
        ) and not await find_indexable_events(
            self._database, collection, [(point.owner, _get_event_id(point))]
        ):
            self._faults.add("left_point", seq, "index", f"vectors of {collection}", str(point.id))

    async def _judge_row(self, collection: Collection, item: IndexableItem, audit: CollectionAudit) -> None:
        """Count a row that lacks points if a pending sweep explains it; else add a fault.

        Do neither if the points exist by now, or if the row is no longer visible.
        """
        if not await self._is_row_visible(collection, item) or all(
            [await self._has_point(collection, *piece) for piece in _list_expected_points(collection, item)]
        ):
            return
        if await self._is_sweep_pending(item.owner):
            audit.waiting += 1
        else:
            self._faults.add("no_point", item.seq, "index", f"vectors of {collection}", item.item)

    async def _is_row_visible(self, collection: Collection, item: IndexableItem) -> bool:
        """Return whether a row is still visible: a message or summary below a watermark is hidden."""
        match collection:
            case Collection.MESSAGES:
                (seen,) = await self._database.run_query(
                    load_visible_messages([MessageLookup(*item.owner, [item.event_id])])
                )
                return bool(seen)
            case Collection.SUMMARIES:
                (live,) = await self._database.run_query(load_summaries_by_id([(item.owner, [item.item])]))
                return any(each.event_id == item.event_id for each in live)
        return bool(await find_indexable_events(self._database, collection, [(item.owner, item.event_id)]))

    async def _has_point(self, collection: Collection, place: UUID, event_id: str) -> bool:
        page = await self._pages.read_page(collection, place, 1)
        return any(each.id == place and _get_event_id(each) == event_id for each in page.points)

    async def _is_sweep_pending(self, owner: Owner) -> bool:
        """Return whether a trigger for a sweep of the user's points is not handled yet."""
        return await has_waiting_sweep(self._connection, "index", owner)


def _get_event_id(point: Point) -> str:
    return str(point.payload["event_id"])


def _list_expected_points(collection: Collection, item: IndexableItem) -> Iterator[_ExpectedPoint]:
    match collection:
        case Collection.MESSAGES:
            yield _ExpectedPoint(derive_point_id(*item.owner, "message", item.event_id), item.event_id)
        case Collection.MEMORIES:
            yield _ExpectedPoint(derive_point_id(*item.owner, "fact", item.item), item.event_id)
        case Collection.SUMMARIES:
            yield _ExpectedPoint(derive_point_id(*item.owner, "summary", item.item), item.event_id)
        case Collection.DOCUMENTS:
            body = item.body or {}
            for number, _ in enumerate(split_chunks(body["text"], body.get("source"))):
                point_id = derive_point_id(*item.owner, "chunk", item.item, str(number))
                yield _ExpectedPoint(point_id, item.event_id)
