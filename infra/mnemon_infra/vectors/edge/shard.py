"""One collection in the embedded engine: writes, flushes, and optimisation as it grows.

The engine is called on the event loop: no call of qdrant-edge-py 0.9.0 releases the GIL, so a call in a
thread would block the loop too, after waiting for the GIL. Calls are kept short instead, and another process
(`optimizer`) does long work on a copy.
"""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from uuid import UUID, uuid4

import structlog
from qdrant_edge import (
    FacetRequest,
    Filter,
    Point,
    UpdateOperation,
)

from mnemon_infra.process.data_folder import replace_file
from mnemon_infra.process.free_space import LEAST, format_megabytes, read_disk_space
from mnemon_infra.process.request_priority import yield_to_requests
from mnemon_infra.process.sparse_copy import copy_sparse_file
from mnemon_infra.vectors.edge.collection_config import create_shard, load_shard
from mnemon_infra.vectors.layout import TENANT
from mnemon_infra.vectors.port import VectorsLost, VectorsUnavailable

log = structlog.get_logger("vectors")

_FLUSH_AFTER = 5.0  # seconds
OPTIMISE_AFTER = 4_000
"""Minimum number of new points before a shard is optimised."""

_BUSY_SHARE = 3
_IDLE_SHARE = 20
"""A shard is optimised if at least one in this many of its points is new.

`_IDLE_SHARE` applies after `IDLE_AFTER` seconds without a write, `_BUSY_SHARE` while the shard is written to:
then optimisations are less frequent, because each copies the whole shard.
"""

IDLE_AFTER = 10.0
"""Seconds without a write after which a shard counts as idle."""

_MOST_MISSED = 10_000  # points; above this, writers that can wait do so
_RUNTIME_ERROR = "Service runtime error"
"""Beginning of the text of the engine's errors that may be temporary."""

WRITTEN_AT_ONCE = 128
"""Maximum number of points of one write: about two milliseconds of the event loop."""


def require_room(folder: Path, needed: int = 0) -> None:
    """Check that the disk has room: a write to a mapped file on a full disk would kill this process.

    Args:
        folder: a folder on the disk.
        needed: bytes that must be free in addition to `LEAST`.

    Raises:
        VectorsUnavailable: the disk has too little room.
        VectorsLost: the folder was deleted.
    """
    try:
        free = read_disk_space(folder).free
    except FileNotFoundError:
        raise VectorsLost(folder) from None
    if free < LEAST + needed:
        raise VectorsUnavailable(
            f"the disk of {folder} has too little room: {format_megabytes(free)} are free, "
            f"{format_megabytes(LEAST + needed)} are needed. Make room on the disk"
        )


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise `VectorsUnavailable` for errors of the engine that may be temporary."""
    try:
        yield
    except Exception as error:
        # The engine raises no more specific exception.
        if type(error) is Exception and str(error).startswith(_RUNTIME_ERROR):
            reason = str(error).removeprefix(_RUNTIME_ERROR).lstrip(": ").partition("\n")[0]
            raise VectorsUnavailable(
                f"the embedded vector store failed: {reason}. Check the free space and the memory"
            ) from error
        raise


@dataclass(frozen=True, slots=True)
class _MissedWrites:
    """Writes and removals since a shard was copied, which the optimised copy lacks.

    Only the ids of written points are kept. The points are read from the engine later, because a rebuild
    writes so many points that copies would fill the memory.
    """

    written: set[int | UUID | str] = field(default_factory=set)
    removals: list[UpdateOperation] = field(default_factory=list)


class Shard:
    """A collection in a folder, whose file `current` names the subfolder that the engine has open.

    Attributes:
        engine: the open engine; every optimisation replaces it.
        tenants: at most two of the tenants that had points when the shard was opened, and all tenants whose
            points were written since. This is enough to see whether the shard has several tenants.
    """

    def __init__(self, folder: Path, dimension: int | None) -> None:
        self.folder = folder
        self._dimension = dimension
        folder.mkdir(exist_ok=True)
        self._current = folder / "current"
        name = self._current.read_text(encoding="utf-8") if self._current.exists() else None
        for entry in folder.iterdir():
            if entry.is_dir() and entry.name != name:
                shutil.rmtree(entry, ignore_errors=True)  # left by a killed process
        # The subfolder may have been deleted: the collection is empty then, and is filled again.
        if name and (folder / name).is_dir():
            self._path = folder / name
            self.engine = load_shard(self._path, dimension)
        else:
            self._path = folder / uuid4().hex
            self.engine = create_shard(self._path, dimension)
            replace_file(self._current, self._path.name)
        tenants = self.engine.facet(FacetRequest(key=TENANT, limit=2)).hits
        self.tenants = {str(hit.value) for hit in tenants}
        vectors = 1 if dimension is None else 2
        info = self.engine.info()
        self._unoptimised = vectors * info.points_count - info.indexed_vectors_count
        self._missed: _MissedWrites | None = None
        self._writing = asyncio.Lock()
        self._flushing: asyncio.TimerHandle | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._optimising: asyncio.Task[None] | None = None

    @property
    def is_lost(self) -> bool:
        """True if the subfolder that the engine has open was deleted or replaced."""
        try:
            return not self._path.is_dir() or self._current.read_text(encoding="utf-8") != self._path.name
        except FileNotFoundError:
            return True

    async def write(self, points: Sequence[Point]) -> None:
        """Add or replace at most `WRITTEN_AT_ONCE` points, letting requests on the event loop go first.

        Raises:
            VectorsUnavailable: the engine fails now, or the disk has too little room.
            VectorsLost: the folder was deleted.
        """
        async with self._lock_writers():
            self.engine.update(UpdateOperation.upsert_points(list(points)))
            if self._missed is not None:
                self._missed.written.update(point.id for point in points)
        self._unoptimised += len(points)
        self._start_optimisation(_BUSY_SHARE)
        self.optimise_when_idle()

    def optimise_when_idle(self) -> None:
        """Start an optimisation after `IDLE_AFTER` seconds without a write, if enough points are new."""
        if self._resting:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(
            IDLE_AFTER, self._start_optimisation, _IDLE_SHARE
        )

    async def remove(self, which: Filter) -> None:
        """Remove the points that match a filter, letting requests on the event loop go first.

        Raises:
            VectorsUnavailable: the engine fails now, or the disk has too little room.
            VectorsLost: the folder was deleted.
        """
        removal = UpdateOperation.delete_points_by_filter(which)
        async with self._lock_writers():
            self.engine.update(removal)
            if self._missed is not None:
                self._missed.removals.append(removal)

    async def wait_until_optimised(self) -> None:
        """Wait for the end of an optimisation if its copy lacks many of the points written meanwhile."""
        if self._optimising and self._missed and len(self._missed.written) >= _MOST_MISSED:
            await asyncio.wait([self._optimising])

    async def stop_background_work(self) -> None:
        """Stop the optimisation and pending flushes, then flush to disk. Searches continue.

        Raises:
            VectorsUnavailable: the engine fails now, or the disk has too little room.
            VectorsLost: the folder was deleted.
        """
        if self._resting:
            self._resting.cancel()
        if self._optimising:
            self._optimising.cancel()
            await asyncio.wait([self._optimising])
        if self._flushing:
            self._flushing.cancel()
            self._flushing = None
        require_room(self._path)
        with translate_errors():
            self.engine.flush()

    def close(self) -> None:
        """Flush to disk if the disk has room, and release the folder.

        Background work ends in the next iterations of the event loop.
        """
        for timer in (self._flushing, self._resting):
            if timer:
                timer.cancel()
        if self._optimising:
            self._optimising.cancel()
        # A folder that was moved has been flushed before.
        with suppress(VectorsUnavailable), translate_errors():
            require_room(self._path)
            self.engine.flush()
        self.engine.close()

    @asynccontextmanager
    async def _lock_writers(self) -> AsyncIterator[None]:
        """Let requests go first, run the block with the lock of the shard's writers, and schedule a flush."""
        await yield_to_requests()
        async with self._writing:
            require_room(self._path)
            with translate_errors():
                yield
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_FLUSH_AFTER, self._flush)

    def _flush(self) -> None:
        # The write-ahead log keeps the writes of a killed process. A flush keeps that log short, and only
        # flushed writes survive a power cut.
        self._flushing = None
        try:
            require_room(self._path)
            with translate_errors():
                self.engine.flush()
        except VectorsUnavailable as error:
            log.warning("vector flush failed", collection=self.folder.name, error=str(error))

    def _start_optimisation(self, share: int) -> None:
        if self._optimising is None and self._is_optimisation_due(share):
            self._optimising = asyncio.create_task(self._optimise_while_due(share), name="vectors-optimising")

    def _is_optimisation_due(self, share: int) -> bool:
        """Return whether at least `OPTIMISE_AFTER` points, and at least 1/`share` of all points, are new."""
        new = self._unoptimised
        return new >= OPTIMISE_AFTER and new >= self.engine.info().points_count // share

    async def _optimise_while_due(self, share: int) -> None:
        try:
            while self._is_optimisation_due(share):
                await self._optimise_copy()
                share = _BUSY_SHARE
            self.optimise_when_idle()
        except VectorsUnavailable as error:
            log.warning(
                "vector optimisation failed, searches are slower",
                collection=self.folder.name,
                error=str(error),
            )
        except Exception:
            log.exception("vector optimisation failed, searches are slower", collection=self.folder.name)
        finally:
            self._optimising = None

    async def _optimise_copy(self) -> None:
        """Optimise a copy of the shard in another process, bring it up to date, and open it instead."""
        former, draft = self._path, self.folder / uuid4().hex
        try:
            async with self._writing:
                self._unoptimised = 0
                # The copy and its rewritten parts, which may get the quantized vectors that they lack.
                require_room(former, 9 * _measure_bytes(former) // 4)
                with translate_errors():
                    self.engine.flush()
                await asyncio.to_thread(shutil.copytree, former, draft, copy_function=copy_sparse_file)
                self._missed = _MissedWrites()
            await _optimise_folder(draft)
            async with self._writing:
                await self._switch_to(draft, self._missed)
        finally:
            self._missed = None
            unused = former if self._path == draft else draft
            await asyncio.to_thread(shutil.rmtree, unused, ignore_errors=True)

    async def _switch_to(self, draft: Path, missed: _MissedWrites) -> None:
        """Bring an optimised copy up to date, and open it in place of the present engine.

        Removals are applied before writes, because a point may have been written again after its removal.
        """
        with translate_errors():
            fresh = load_shard(draft, self._dimension)
        try:
            for removal in missed.removals:
                with translate_errors():
                    fresh.update(removal)
                await yield_to_requests()
            written = iter(missed.written)
            while some := list(islice(written, WRITTEN_AT_ONCE)):
                with translate_errors():
                    stored = self.engine.retrieve(some, with_payload=True, with_vector=True)
                    points = [Point(each.id, each.vector or {}, each.payload) for each in stored]
                    fresh.update(UpdateOperation.upsert_points(points))
                await yield_to_requests()
            replace_file(self._current, draft.name)
        except BaseException:
            fresh.close()
            raise
        former, self.engine, self._path = self.engine, fresh, draft
        former.close()


def _measure_bytes(folder: Path) -> int:
    """Return the bytes that a folder takes up on disk, without the holes of sparse files."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))


async def _optimise_folder(folder: Path) -> None:
    program = Path(__file__).with_name("optimizer.py")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(program), str(folder)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last_line = said.decode(errors="replace").strip().rpartition("\n")[2]
        reason = last_line[-500:] or f"exit code {process.returncode}"
        raise VectorsUnavailable(f"{folder} was not optimised: {reason}. Check the free space and the memory")
