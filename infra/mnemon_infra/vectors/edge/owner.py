"""Requests to the Edge owner, the only process that can open the folder of the embedded engine."""

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
from mnemon_infra.vectors.edge.engine import swap_open_folder
from mnemon_infra.vectors.port import Collection, Point, PointPage, VectorStore, VectorsUnavailable

log = structlog.get_logger("vectors")

_SUBJECT: Final = "changed.vectors.holder"
"""Prefix of the subjects for requests to the Edge owner; only mnemon's own processes may publish there."""

MOST: Final = 64
"""Maximum number of points per page, so that a page blocks the event loop for about a millisecond."""

_MOST_BYTES: Final = 400_000
"""Maximum bytes of the vectors in a reply, unless a single point has more."""

_TIMEOUT: Final = 20.0
"""Maximum seconds for running writes to end; clients wait 5 seconds longer for an answer."""

LEASE: Final = 60.0
"""Maximum seconds for which another process can pause the writers."""


class PointMessage(msgspec.Struct, array_like=True):
    """A point in MessagePack, as the Edge owner sends it; the numbers of its vectors are packed in bytes."""

    id: bytes
    owner: tuple[str, str]
    payload: dict[str, Any]
    indices: bytes
    values: bytes
    dense: bytes | None


class OwnerReply(msgspec.Struct):
    """A reply of the Edge owner; `error` is None unless the request failed.

    A reply with a page has `points`, and in `following` the id of the first point of the next page; None at
    the end. A reply with counts has the number of points of each collection in `counts`.
    """

    error: str | None = None
    points: list[PointMessage] = []
    following: bytes | None = None
    counts: dict[str, int] = {}


class OwnerRequest(msgspec.Struct):
    """A request to the Edge owner.

    A request for a page has `collection`, `begin` and `limit`; `begin` is the id of the first point of the
    page, None for the first page. A request for a swap has `folder`, the folder that is to become live. In
    the encoded request, `limit` is named `most`, and `folder` is named `to`.
    """

    collection: str = ""
    begin: bytes | None = None
    limit: int = msgspec.field(default=MOST, name="most")
    folder: str = msgspec.field(default="", name="to")


class EdgeOwner:
    """Client of the Edge owner for other processes."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._page_limit = MOST

    async def read_page(
        self, collection: Collection, begin: UUID | None = None, most: int = MOST
    ) -> PointPage:
        """Return points, as `VectorStore.read_page` does; a page may be shorter than requested.

        Raises:
            VectorsUnavailable: the Edge owner does not answer, or reports an error.
        """
        limit = min(most, self._page_limit)
        asked = OwnerRequest(collection, begin.bytes if begin else None, limit)
        answer = await self._send_request("page", asked)
        if answer.following and limit == self._page_limit:
            # The Edge owner reads all requested points, also those that its reply has no room for.
            self._page_limit = min(MOST, 2 * len(answer.points))
        return PointPage(
            [_decode_point(each) for each in answer.points],
            UUID(bytes=answer.following) if answer.following else None,
        )

    async def count_points(self) -> Mapping[str, int]:
        """Return the number of points of each collection, by its name.

        Raises:
            VectorsUnavailable: the Edge owner does not answer, or reports an error.
        """
        return (await self._send_request("counts", OwnerRequest())).counts

    async def pause_writers(self) -> None:
        """Pause the Edge owner's writers until `swap_folder` is called, for at most `LEASE` seconds.

        Raises:
            VectorsUnavailable: the Edge owner does not answer, or running writes take too long.
        """
        await self._send_request("pause", OwnerRequest())

    async def swap_folder(self, folder: Path) -> None:
        """Swap the folder of the Edge owner for `folder`, and let its writers continue.

        Raises:
            VectorsUnavailable: the Edge owner does not answer, or the swap failed.
        """
        await self._send_request("take", OwnerRequest(folder=str(folder)))

    async def _send_request(self, verb: str, request: OwnerRequest) -> OwnerReply:
        try:
            reply = await self._connection.request(
                f"{_SUBJECT}.{verb}", msgspec.msgpack.encode(request), timeout=_TIMEOUT + 5
            )
        except nats.errors.Error as error:
            raise VectorsUnavailable(
                f"the Edge owner does not answer: {error}. Check that a process runs the consumer `index`, "
                "in the same version of mnemon as this process"
            ) from error
        answer = msgspec.msgpack.decode(reply.data, type=OwnerReply)
        if answer.error is not None:
            raise VectorsUnavailable(answer.error)
        return answer


@asynccontextmanager
async def serve_requests(
    connection: Client, vectors: VectorStore, folder: Path, gate: Gate
) -> AsyncIterator[None]:
    """Answer other processes' requests for this process's vectors, for the duration of the block.

    Args:
        connection: connection to NATS.
        vectors: the vectors of the folder.
        folder: the live folder.
        gate: the gate that all writers pass; it is closed while writers pause, and counts each swap.
    """
    service = _OwnerService(vectors, folder, gate)
    verbs = {
        "page": service.answer_page,
        "counts": service.answer_counts,
        "pause": service.pause_writers,
        "take": service.swap_folder,
    }
    subscriptions = [
        await connection.subscribe(f"{_SUBJECT}.{verb}", cb=_build_handler(answer))
        for verb, answer in verbs.items()
    ]
    try:
        yield
    finally:
        for subscription in subscriptions:
            await subscription.unsubscribe()
        gate.open()


class _OwnerService:
    """Answers of the Edge owner. A pause of its writers ends with the swap, or after `LEASE` seconds."""

    def __init__(self, vectors: VectorStore, folder: Path, gate: Gate) -> None:
        self._vectors = vectors
        self._folder = folder
        self._gate = gate
        self._lease: asyncio.TimerHandle | None = None

    async def answer_page(self, request: OwnerRequest) -> OwnerReply:
        begin = UUID(bytes=request.begin) if request.begin else None
        limit = min(request.limit, MOST)
        return _fit_page(await self._vectors.read_page(Collection(request.collection), begin, limit))

    async def answer_counts(self, _: OwnerRequest) -> OwnerReply:
        return OwnerReply(counts={each.value: await self._vectors.count(each) for each in Collection})

    async def pause_writers(self, _: OwnerRequest) -> OwnerReply:
        self._cancel_lease()
        self._lease = asyncio.get_running_loop().call_later(LEASE, self._gate.open)
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._gate.close()
        except TimeoutError:
            self._end_pause()
            return OwnerReply(
                error=f"the Edge owner's writes did not end within {_TIMEOUT:g} s: repeat the command"
            )
        return OwnerReply()

    async def swap_folder(self, request: OwnerRequest) -> OwnerReply:
        if self._gate.is_open:
            return OwnerReply(error="the Edge owner's writers continued before the swap: repeat the command")
        self._cancel_lease()  # the end of the swap ends the pause, however long the swap takes
        try:
            await swap_open_folder(self._folder, Path(request.folder))
            self._gate.count_exchange()
            log.info("vectors swapped", folder=request.folder)
        finally:
            self._end_pause()
        return OwnerReply()

    def _end_pause(self) -> None:
        self._cancel_lease()
        self._gate.open()

    def _cancel_lease(self) -> None:
        if self._lease:
            self._lease.cancel()


def _build_handler(
    answer: Callable[[OwnerRequest], Awaitable[OwnerReply]],
) -> Callable[[Msg], Awaitable[None]]:
    async def handle(message: Msg) -> None:
        try:
            said = await answer(msgspec.msgpack.decode(message.data, type=OwnerRequest))
        except Exception as error:
            log.exception("vector request of another process failed", subject=message.subject)
            said = OwnerReply(
                error=f"the Edge owner failed: {error}. Read the traceback in the log of the process that "
                "runs `index`"
            )
        await message.respond(msgspec.msgpack.encode(said))

    return handle


def _fit_page(page: PointPage) -> OwnerReply:
    """Return a reply with as many points of a page as fit into a message, and at least one."""
    points: list[PointMessage] = []
    size = 0
    for point in page.points:
        written = _encode_point(point)
        size += sum(map(len, (written.indices, written.values, written.dense or b"")))
        if points and size > _MOST_BYTES:
            return OwnerReply(points=points, following=written.id)
        points.append(written)
    return OwnerReply(points=points, following=page.following.bytes if page.following else None)


def _encode_point(point: Point) -> PointMessage:
    return PointMessage(
        point.id.bytes,
        point.owner,
        dict(point.payload),
        np.asarray(point.sparse.indices, dtype="<u4").tobytes(),
        np.asarray(point.sparse.values, dtype="<f4").tobytes(),
        None if point.dense is None else point.dense.astype("<f4").tobytes(),
    )


def _decode_point(written: PointMessage) -> Point:
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
