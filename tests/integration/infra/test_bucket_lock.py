"""Lock of a bucket; each store of a test stands for a process."""

import asyncio
import time
from collections.abc import Awaitable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from structlog.testing import capture_logs

from mnemon_infra.process.cancellation import run_task
from mnemon_infra.storage import bucket_lock
from mnemon_infra.storage.bucket_lock import BucketLocked
from mnemon_infra.storage.object_store import BucketStore, ObjectMissing, open_object_store
from tests.support.servers.bucket_server import BUCKET, serve_bucket


@pytest.fixture(scope="module")
def variables() -> Iterator[dict[str, str]]:
    with serve_bucket() as variables:
        yield variables


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_lock, "ABANDONED_SECONDS", 0.5)
    monkeypatch.setattr(bucket_lock, "RENEWAL_SECONDS", 0.0)
    monkeypatch.setattr(bucket_lock, "POLL_SECONDS", 0.05)


@pytest.fixture
def location(variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{tmp_path.name}"


def bucket(location: str) -> BucketStore:
    store = open_object_store(location)
    assert isinstance(store, BucketStore)
    return store


async def keep_alive(holder: BucketStore) -> None:
    while True:
        await holder.write("segment", b"1")


async def test_lock_of_a_living_holder_is_refused(location: str) -> None:
    holder = bucket(location)
    async with holder.lock("lock"), run_task(keep_alive(holder)):
        with pytest.raises(BucketLocked):
            async with bucket(location).lock("lock"):
                pass


async def test_released_lock_is_acquired_at_once(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_lock, "ABANDONED_SECONDS", 1000.0)
    for _ in range(2):
        async with bucket(location).lock("lock"):
            pass
    with pytest.raises(ObjectMissing):
        await bucket(location).read("lock")


async def test_lock_is_released_after_a_write_that_was_cancelled(location: str) -> None:
    for steps in range(20):
        holder = bucket(location)
        async with holder.lock("lock"):
            writing = asyncio.create_task(holder.write("segment", b"1"))
            for _ in range(steps):
                await asyncio.sleep(0)
            writing.cancel()
            await asyncio.wait([writing])
        with pytest.raises(ObjectMissing):
            await holder.read("lock")


async def test_lock_that_is_released_during_the_wait_is_acquired(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_lock, "ABANDONED_SECONDS", 1000.0)
    holder = bucket(location)
    await holder.write("lock", b"of another process")

    async def read_own_lock() -> bytes:
        async with bucket(location).lock("lock"):
            return await holder.read("lock")

    with capture_logs() as logs:
        reading = asyncio.create_task(read_own_lock())
        while not logs:
            await asyncio.sleep(0)
        await holder.delete("lock")
        assert await reading != b"of another process"


async def test_lock_of_a_killed_holder_is_taken_over_after_a_wait(location: str) -> None:
    store = bucket(location)
    await store.write("lock", b"of a killed process")
    begun = time.monotonic()
    async with store.lock("lock"):
        assert time.monotonic() - begun >= bucket_lock.ABANDONED_SECONDS
        await store.write("segment", b"1")
    with pytest.raises(ObjectMissing):
        await store.read("lock")


async def test_holder_whose_lock_was_taken_over_changes_nothing(location: str) -> None:
    store, other = bucket(location), bucket(location)
    await other.write("segment", b"of the other")

    async def change_after_takeover(change: Awaitable[None]) -> None:
        async with store.lock("lock"):
            await other.write("lock", b"of the other")
            await change

    for change in (store.write("segment", b"1"), store.delete("segment")):
        with pytest.raises(BucketLocked):
            await change_after_takeover(change)
        assert await other.read("segment") == await other.read("lock") == b"of the other"
        await other.delete("lock")


class _Storage(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        self.store(self.rfile.read(int(self.headers["Content-Length"])))

    def store(self, body: bytes) -> None:
        raise NotImplementedError

    def respond(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Tue, 01 Dec 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _NoConditions(_Storage):
    """Refuses conditional writes as S3 refuses headers that it does not implement."""

    def store(self, body: bytes) -> None:
        if "If-None-Match" in self.headers:
            self.respond(501, b"<Error><Code>NotImplemented</Code></Error>")
        else:
            self.respond(200)


class _LostAnswer(_Storage):
    """Stores the first write, and answers that it failed."""

    content = b""
    removed = False

    def store(self, body: bytes) -> None:
        if _LostAnswer.content:
            self.respond(412)
        else:
            _LostAnswer.content = body
            self.respond(503)

    def do_GET(self) -> None:
        self.respond(200, self.content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:  # removal of files
        _LostAnswer.removed = True
        self.respond(200, b"<DeleteResult><Deleted><Key>lock</Key></Deleted></DeleteResult>")


@pytest.fixture
def other_storage(
    request: pytest.FixtureRequest, location: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BucketStore]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), request.param)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    yield bucket(location)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("other_storage", [_NoConditions], indirect=True)
async def test_storage_without_conditional_writes_is_used_without_a_lock(other_storage: BucketStore) -> None:
    with capture_logs() as logs:
        async with other_storage.lock("lock"):
            await other_storage.write("segment", b"1")
    assert [each["event"] for each in logs] == ["bucket not locked, conditional writes unsupported"]


@pytest.mark.parametrize("other_storage", [_LostAnswer], indirect=True)
async def test_lock_whose_write_was_not_answered_is_held(other_storage: BucketStore) -> None:
    async with other_storage.lock("lock"):
        assert not _LostAnswer.removed
    assert _LostAnswer.removed
