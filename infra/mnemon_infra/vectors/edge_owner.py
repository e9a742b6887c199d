"""The process that holds the folder of the embedded engine answers others: they cannot open it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec
import nats.errors
import numpy as np
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.process.gate import Gate
from mnemon_infra.vectors.edge import take_over
from mnemon_infra.vectors.port import Collection, Point, PointPage, VectorStore, VectorsUnavailable

log = structlog.get_logger("vectors")

_SUBJECT: Final = "changed.vectors.holder"
"""Among the subjects that our own processes may use, and no bot."""

_EXCHANGED: Final = "changed.vectors.all.exchanged"

MOST: Final = 64
"""Points of a page: about a millisecond of the event loop that bots wait for."""

_MOST_BYTES: Final = 400_000
_PATIENCE: Final = 20.0
"""Seconds for an answer, and for what is under way to end."""

LEASE: Final = 60.0
"""Seconds after which writers go on, whatever became of the one who had them wait."""


class PointMessage(msgspec.Struct, array_like=True):
    """A point on its way."""

    id: bytes
    owner: tuple[str, str]
    payload: dict[str, Any]
    indices: bytes
    values: bytes
    dense: bytes | None


class OwnerReply(msgspec.Struct):
    """What the holder says."""

    error: str | None = None
    points: list[PointMessage] = []
    following: bytes | None = None
    counts: dict[str, int] = {}


class OwnerRequest(msgspec.Struct):
    """What it is asked."""

    collection: str = ""
    begin: bytes | None = None
    most: int = MOST
    to: str = ""


class EdgeOwner:
    """The process that holds the folder, as others see it."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection

    async def page(self, collection: Collection, begin: UUID | None = None, most: int = MOST) -> PointPage:
        """As of `VectorStore`; a page may be shorter than what is asked for.

        Raises:
            VectorsUnavailable: it does not answer.
        """
        asked = OwnerRequest(collection, begin.bytes if begin else None, most)
        answer = await self._ask("page", asked)
        return PointPage(
            [_read(each) for each in answer.points],
            UUID(bytes=answer.following) if answer.following else None,
        )

    async def counts(self) -> Mapping[str, int]:
        """How many points there are, by collection.

        Raises:
            VectorsUnavailable: it does not answer.
        """
        return (await self._ask("counts", OwnerRequest())).counts

    async def pause(self) -> None:
        """Have its writers wait, until `take` or for `LEASE` seconds.

        Raises:
            VectorsUnavailable: it does not answer, or what is under way takes too long.
        """
        await self._ask("pause", OwnerRequest())

    async def take(self, folder: Path) -> None:
        """Have it put a folder in the place of its own, and its writers go on.

        Raises:
            VectorsUnavailable: it does not answer, or cannot.
        """
        await self._ask("take", OwnerRequest(to=str(folder)))

    async def _ask(self, verb: str, asked: OwnerRequest) -> OwnerReply:
        try:
            reply = await self._connection.request(
                f"{_SUBJECT}.{verb}", msgspec.msgpack.encode(asked), timeout=_PATIENCE + 5
            )
        except nats.errors.Error as error:
            raise VectorsUnavailable(
                f"the process that holds the vectors does not answer: {error!r}. Is it of this version?"
            ) from error
        answer = msgspec.msgpack.decode(reply.data, type=OwnerReply)
        if answer.error is not None:
            raise VectorsUnavailable(answer.error)
        return answer


@asynccontextmanager
async def answering_for(
    connection: Client, vectors: VectorStore, folder: Path, gate: Gate
) -> AsyncIterator[None]:
    """Answer those who want the points of the folder that this process holds, as long as the block lasts.

    Args:
        connection: where they ask.
        vectors: of the folder.
        folder: the live one.
        gate: that all pass who write; it is told when the points are others.
    """
    lease: asyncio.TimerHandle | None = None

    async def page(asked: OwnerRequest) -> OwnerReply:
        begin = UUID(bytes=asked.begin) if asked.begin else None
        found = await vectors.page(Collection(asked.collection), begin, min(asked.most, MOST))
        return _cut(found)

    async def counts(asked: OwnerRequest) -> OwnerReply:
        return OwnerReply(counts={each.value: await vectors.count(each) for each in Collection})

    async def pause(asked: OwnerRequest) -> OwnerReply:
        nonlocal lease
        lease = asyncio.get_running_loop().call_later(LEASE, gate.open)
        try:
            async with asyncio.timeout(_PATIENCE):
                await gate.close()
        except TimeoutError:
            gate.open()
            return OwnerReply(error="what is being indexed takes too long: try again")
        return OwnerReply()

    async def take(asked: OwnerRequest) -> OwnerReply:
        if gate.is_open:
            return OwnerReply(error="something was indexed meanwhile: try again")
        try:
            await take_over(folder, Path(asked.to))
            gate.exchanged()
            log.info("vectors swapped", folder=asked.to)
        finally:
            if lease:
                lease.cancel()
            gate.open()
        return OwnerReply()

    verbs = {"page": page, "counts": counts, "pause": pause, "take": take}
    subscriptions = [
        await connection.subscribe(f"{_SUBJECT}.{verb}", cb=_answering(answer))
        for verb, answer in verbs.items()
    ]
    try:
        yield
    finally:
        for subscription in subscriptions:
            await subscription.unsubscribe()
        gate.open()


@asynccontextmanager
async def hearing_of_exchanges(connection: Client, gate: Gate) -> AsyncIterator[None]:
    """Hear, as long as the block lasts, that a server's collections were exchanged by somebody else."""

    async def heard(message: Msg) -> None:
        gate.exchanged()

    subscription = await connection.subscribe(_EXCHANGED, cb=heard)
    try:
        yield
    finally:
        await subscription.unsubscribe()


async def tell_of_exchange(connection: Client) -> None:
    """Tell all who write that a server's collections were exchanged.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    await connection.publish(_EXCHANGED)
    await connection.flush()


def _answering(answer: Callable[[OwnerRequest], Awaitable[OwnerReply]]) -> Callable[[Msg], Awaitable[None]]:
    async def handle(message: Msg) -> None:
        try:
            said = await answer(msgspec.msgpack.decode(message.data, type=OwnerRequest))
        except Exception as error:
            log.exception("vector request of another process failed")
            said = OwnerReply(error=f"the process that holds the vectors: {error}")
        await message.respond(msgspec.msgpack.encode(said))

    return handle


def _cut(page: PointPage) -> OwnerReply:
    """As much of a page as fits into a message."""
    points: list[PointMessage] = []
    size = 0
    for point in page.points:
        written = _written(point)
        size += sum(map(len, (written.indices, written.values, written.dense or b"")))
        if points and size > _MOST_BYTES:
            return OwnerReply(points=points, following=written.id)
        points.append(written)
    return OwnerReply(points=points, following=page.following.bytes if page.following else None)


def _written(point: Point) -> PointMessage:
    return PointMessage(
        point.id.bytes,
        point.owner,
        dict(point.payload),
        np.asarray(point.sparse.indices, dtype="<u4").tobytes(),
        np.asarray(point.sparse.values, dtype="<f4").tobytes(),
        None if point.dense is None else point.dense.astype("<f4").tobytes(),
    )


def _read(written: PointMessage) -> Point:
    dense = written.dense
    return Point(
        UUID(bytes=written.id),
        written.owner,
        written.payload,
        Sparse(
            np.frombuffer(written.indices, dtype="<u4").tolist(),
            np.frombuffer(written.values, dtype="<f4").tolist(),
        ),
        None if dense is None else np.frombuffer(dense, dtype="<f4").astype(np.float32),
    )
