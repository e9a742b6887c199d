"""Lock of a bucket: a file that its holder rewrites while it writes other files."""

import asyncio
import time
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import structlog

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore as RemoteStore

log = structlog.get_logger("bucket")

ABANDONED_SECONDS: Final = 60.0
"""Seconds without a change of the file after which the lock counts as abandoned by a killed process."""

RENEWAL_SECONDS: Final = 15.0
"""Seconds after which the holder rewrites the file before its next write."""

POLL_SECONDS: Final = 2.0
"""Seconds between two checks of the lock of another process."""

_NOT_IMPLEMENTED: Final = "NotImplemented"
"""Code of the error with which a storage without conditional writes answers."""


class BucketLocked(Exception):
    """Another process holds the lock of the bucket, or has taken it over."""


class BucketLock:
    """A lock that excludes other processes by conditional writes; their clocks need not agree.

    A process that finds the file of another process watches the file. If the file changes, the other process
    is alive. If the file stays the same for `ABANDONED_SECONDS`, the watching process replaces the file.
    """

    def __init__(self, store: "RemoteStore", name: str) -> None:
        self._store = store
        self._name = name
        self._holder = uuid4().hex
        self._tag: str | None = None
        self._renewed_at = 0.0

    async def acquire(self) -> None:
        """Acquire the lock, after a wait of `ABANDONED_SECONDS` if a killed process has left it.

        If the storage has no conditional writes, log a warning and acquire no lock.

        Raises:
            BucketLocked: another process holds the lock.
            obstore.exceptions.BaseError, OSError: the bucket cannot be read or written.
        """
        from obstore.exceptions import BaseError

        try:
            is_acquired = await self._write("create")
        except BaseError as error:
            if _NOT_IMPLEMENTED not in str(error):
                raise
            log.warning(
                "bucket not locked, conditional writes unsupported",
                next_step="start no backup into the bucket before the last one has ended",
            )
            return
        if not is_acquired and not await self._write(await self._await_abandonment()):
            raise BucketLocked

    async def renew(self) -> None:
        """Rewrite the file if the last time was `RENEWAL_SECONDS` ago. Call this before each write.

        Raises:
            BucketLocked: another process has taken over the lock.
            obstore.exceptions.BaseError, OSError: the bucket cannot be written.
        """
        is_due = time.monotonic() - self._renewed_at > RENEWAL_SECONDS
        if self._tag is not None and is_due and not await self._write({"e_tag": self._tag}):
            self._tag = None
            raise BucketLocked

    async def release(self) -> None:
        """Remove the file, unless another process has taken over the lock.

        Raises:
            obstore.exceptions.BaseError, OSError: the bucket cannot be read or written.
        """
        if self._tag is not None and await self._is_own():
            await self._store.delete_async(self._name)

    async def _await_abandonment(self) -> "PutMode":
        """Wait until the lock of another process is free, and return the mode of the write that takes it.

        Raises:
            BucketLocked: the other process is alive.
        """
        log.info("bucket lock found, watching its holder", seconds=ABANDONED_SECONDS)
        tag, end = await self._read_tag(), time.monotonic() + ABANDONED_SECONDS
        while tag is not None and time.monotonic() < end:
            await asyncio.sleep(POLL_SECONDS)
            now = await self._read_tag()
            if now not in (tag, None):
                raise BucketLocked
            tag = now
        return "create" if tag is None else {"e_tag": tag}

    async def _write(self, mode: "PutMode") -> bool:
        """Write the file with a new content; False if the condition `mode` is not met."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        content = f"{self._holder} {uuid4().hex}"
        try:
            tag = (await self._store.put_async(self._name, content.encode(), mode=mode))["e_tag"]
        except (AlreadyExistsError, PreconditionError):
            # A write whose answer was lost may have met the condition before it was repeated.
            if not await self._is_own():
                return False
            tag = await self._read_tag()
        self._tag, self._renewed_at = tag, time.monotonic()
        return True

    async def _is_own(self) -> bool:
        try:
            content = await (await self._store.get_async(self._name)).bytes_async()
        except FileNotFoundError:
            return False
        return bytes(content).startswith(self._holder.encode())

    async def _read_tag(self) -> str | None:
        try:
            return (await self._store.head_async(self._name))["e_tag"]
        except FileNotFoundError:
            return None
