"""Object store: named files in a local folder, or in a bucket of S3-compatible storage."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from mnemon_infra.process.data_folder import sync_path
from mnemon_infra.storage.bucket_lock import BucketLock

if TYPE_CHECKING:
    from obstore.store import ObjectStore as RemoteStore

URL_SCHEMES: Final = "s3", "s3a"
"""Schemes of the addresses that name a bucket. A location without `://` is a folder."""

_RETRY_TIMEOUT: Final = timedelta(seconds=30)
_NO_BUCKET: Final = "NoSuchBucket"


class ObjectMissing(Exception):
    """The store has no file of this name."""


class StoreUnavailable(Exception):
    """The store cannot be read or written; the message names the store and the next step."""


class ObjectStore(Protocol):
    """A store of named files. A name is a relative path with `/`."""

    location: str

    async def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            ObjectMissing: there is no such file.
            StoreUnavailable: the store cannot be read.
        """
        ...

    async def write(self, name: str, body: bytes) -> None:
        """Write a file as a whole or not at all, in place of a former file of this name.

        Raises:
            StoreUnavailable: the store cannot be written.
        """
        ...

    async def list_names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder of the store, sorted; empty if there are none.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        ...

    async def delete(self, name: str) -> None:
        """Remove a file. An absent file counts as removed.

        Raises:
            StoreUnavailable: the store cannot be written.
        """
        ...


def open_object_store(location: str | Path) -> ObjectStore:
    """Open a folder, which the first write creates, or the bucket of an address such as `s3://bucket/prefix`.

    The bucket must exist. Environment variables configure it, such as `AWS_ACCESS_KEY_ID`,
    `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and `AWS_ENDPOINT_URL`.

    Raises:
        StoreUnavailable: the address cannot be used.
        ModuleNotFoundError: the package `obstore`, which buckets need, is not installed.
    """
    scheme, separator, _ = str(location).partition("://")
    if not separator:
        return LocalStore(Path(location))
    if scheme not in URL_SCHEMES or not urlsplit(str(location)).netloc:
        raise StoreUnavailable(f"{location} cannot be used: name a folder, or a bucket as s3://BUCKET/PREFIX")
    return _open_bucket(str(location))


class LocalStore:
    """Object store in a local folder, with files that only this account can read."""

    def __init__(self, folder: Path) -> None:
        self.location = str(folder)
        self._folder = folder

    async def read(self, name: str) -> bytes:
        with self._convert_errors():
            try:
                return await asyncio.to_thread((self._folder / name).read_bytes)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise ObjectMissing(f"{self.location} has no file {name}: check the name") from error

    async def write(self, name: str, body: bytes) -> None:
        with self._convert_errors():
            await asyncio.to_thread(_replace_durably, self._folder / name, body)

    async def list_names(self, folder: str) -> list[str]:
        with self._convert_errors():
            return await asyncio.to_thread(self._list_files, folder)

    async def delete(self, name: str) -> None:
        with self._convert_errors():
            await asyncio.to_thread((self._folder / name).unlink, missing_ok=True)

    def _list_files(self, folder: str) -> list[str]:
        if not (self._folder / folder).is_dir():
            return []
        paths = (self._folder / folder).iterdir()
        return sorted(f"{folder}/{each.name}" for each in paths if each.is_file())

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or self.location
            raise StoreUnavailable(
                f"{where} cannot be used: {error.strerror}. Check its permissions and the free space, or "
                "name another folder"
            ) from error


def _replace_durably(path: Path, body: bytes) -> None:
    """Replace a file atomically, and return once a power cut can no longer undo that."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        draft.touch(mode=0o600)
        draft.write_bytes(body)
        sync_path(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_path(path.parent)


class BucketStore:
    """Object store in a bucket, with names below a prefix."""

    def __init__(self, location: str, store: "RemoteStore") -> None:
        self.location = location
        self._store = store
        self._lock: BucketLock | None = None

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Acquire a lock of the bucket for the duration of the block; `name` is the name of the lock's file.

        A write or removal within the block fails if another process has taken over the lock.

        Raises:
            BucketLocked: another process holds the lock, or has taken it over.
            StoreUnavailable: the bucket cannot be read or written.
        """
        lock = BucketLock(self._store, name)
        with self._convert_errors(name):
            await lock.acquire()
        self._lock = lock
        try:
            yield
        finally:
            self._lock = None
            with self._convert_errors(name):
                await lock.release()

    async def read(self, name: str) -> bytes:
        with self._convert_errors(name):
            found = await self._store.get_async(name)
            return bytes(await found.bytes_async())

    async def write(self, name: str, body: bytes) -> None:
        with self._convert_errors(name):
            await self._renew_lock()
            await self._store.put_async(name, body)

    async def list_names(self, folder: str) -> list[str]:
        with self._convert_errors(folder):
            pages = self._store.list(folder)
            return sorted([each["path"] async for page in pages for each in page])

    async def delete(self, name: str) -> None:
        with suppress(ObjectMissing), self._convert_errors(name):
            await self._renew_lock()
            await self._store.delete_async(name)

    async def _renew_lock(self) -> None:
        if self._lock:
            await self._lock.renew()

    @contextmanager
    def _convert_errors(self, name: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            if isinstance(error, FileNotFoundError) and _NO_BUCKET not in str(error):
                raise ObjectMissing(f"{self.location} has no file {name}: check the name") from error
            reason = str(error).partition("\n")[0]
            if _NO_BUCKET in str(error):
                reason = "the bucket does not exist"
            raise StoreUnavailable(
                f"{self.location} cannot be used: {reason}. Check the bucket, AWS_ACCESS_KEY_ID, "
                "AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL"
            ) from error


def _open_bucket(location: str) -> BucketStore:
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    try:
        store = S3Store.from_url(
            location,
            config={"endpoint": endpoint} if endpoint else {},
            client_options={"allow_http": bool(endpoint and endpoint.startswith("http://"))},
            retry_config={"max_retries": 3, "retry_timeout": _RETRY_TIMEOUT},
        )
    except (BaseError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise StoreUnavailable(
            f"{location} cannot be used: {reason}. Name a bucket as s3://BUCKET/PREFIX"
        ) from error
    return BucketStore(location, store)
