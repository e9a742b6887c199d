"""Connections of the gateway with slow clients, faulty providers and large bodies."""

import asyncio
import gc
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx
import psutil
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from mnemon.gateway import body_limits
from mnemon.gateway.application import create_application
from mnemon.gateway.callers import Callers
from mnemon.gateway.memory_access import MemoryAccess
from mnemon.gateway.proxy.messages import ChatMessage
from mnemon.gateway.proxy.recorder import ConversationRecorder, Thread
from mnemon.gateway.routes import changes
from mnemon.http import server
from mnemon.http.server import format_address, open_listening_socket, serve_http
from mnemon_contracts.verbs.ask import HistoryReplyV1
from mnemon_infra.config import Deployment
from mnemon_infra.process.cancellation import run_task
from mnemon_infra.settings import api_keys
from mnemon_infra.settings.api_keys import ApiKeys, IssuedKey, issue_key, open_api_keys
from mnemon_producers.client import MemoryClient
from tests.support.processes.stack import TIMEOUT, until


async def connect_client(url: httpx.URL) -> socket.socket:
    """Return a connection whose client has a receive buffer of 4 KiB."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, (url.host, url.port))
    return client


@dataclass
class LocalGateway:
    """A gateway in this process, and an API key of tenant `acme`."""

    url: httpx.URL
    callers: Callers
    keys: ApiKeys
    issued: IssuedKey

    async def connect(self) -> socket.socket:
        return await connect_client(self.url)

    def open_client(self) -> httpx.AsyncClient:
        """Return a client that sends the key."""
        headers = {"Authorization": f"Bearer {self.issued.text}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=TIMEOUT)

    def has_open_requests(self) -> bool:
        return bool(self.callers._open)


@dataclass
class RawProvider:
    """A provider that records the head of each request and answers with the same bytes."""

    response: bytes = b""
    url: str = ""
    received: list[bytes] = field(default_factory=list)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["RawProvider"]:
        listening = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        async with listening:
            self.url = "http://{}:{}".format(*listening.sockets[0].getsockname())
            yield self

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.response)
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[RawProvider]:
    async with RawProvider().serve() as provider:
        yield provider


@pytest_asyncio.fixture
async def gateway(connection: Client, nats_url: str, provider: RawProvider) -> AsyncIterator[LocalGateway]:
    keys = await open_api_keys(connection)
    issued = issue_key("acme")
    await keys.add(issued.stored)
    deployment = Deployment(nats_url=nats_url, model_url=provider.url)
    application = create_application(connection, keys, deployment)
    listening = open_listening_socket("127.0.0.1", 0)
    async with serve_http(application, listening):
        yield LocalGateway(httpx.URL(format_address(listening)), application.state.callers, keys, issued)


@dataclass
class WatchedConnection:
    """Both ends of a connection to a server in this process."""

    client: socket.socket
    protocol: server.SlowClientProtocol

    async def request(self) -> None:
        await asyncio.get_running_loop().sock_sendall(self.client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    def pass_time(self) -> None:
        """Run the server's check for unused connections, which is scheduled after `IDLE_SECONDS`."""
        timer = self.protocol._unused
        assert timer
        timer._run()
        timer.cancel()

    def count_waiting(self) -> int:
        return self.protocol.transport.get_write_buffer_size()

    async def read_waiting(self, most: int) -> bytes:
        """Read until at most `most` bytes wait in the server's write buffer, and return the bytes read."""
        return await self.read(lambda _: self.count_waiting() <= max(most, 0))

    async def read(self, is_enough: Callable[[bytes], bool]) -> bytes:
        """Read until `is_enough` holds for the bytes read, or the connection ends; return the bytes."""
        loop, content = asyncio.get_running_loop(), b""
        async with asyncio.timeout(TIMEOUT):
            while not is_enough(content) and (part := await loop.sock_recv(self.client, 2**16)):
                content += part
        return content


@asynccontextmanager
async def connected(
    application: ASGIApp, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[WatchedConnection]:
    """Serve an application, and connect to it."""
    accepted: list[server.SlowClientProtocol] = []

    class RecordedProtocol(server.SlowClientProtocol):
        # As in the base class, the transport's type is narrower than in asyncio's protocol.
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            accepted.append(self)

    monkeypatch.setattr(server, "SlowClientProtocol", RecordedProtocol)
    listening = open_listening_socket("127.0.0.1", 0)
    # Connections inherit it; a larger buffer of the kernel would take megabytes from the server's own.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    async with serve_http(application, listening):
        with await connect_client(httpx.URL(format_address(listening))) as client:
            await until(lambda: bool(accepted))
            yield WatchedConnection(client, accepted[0])


def is_open(client: socket.socket) -> bool:
    """Return whether the gateway's side of the client's connection is open."""
    address = client.getsockname()
    return any(each.raddr == address for each in psutil.Process().net_connections("tcp"))


@pytest.mark.long
async def test_stream_of_a_client_that_does_not_read_ends(
    gateway: LocalGateway, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "READ_SECONDS", 0.2)
    loop = asyncio.get_running_loop()
    bot = MemoryClient(connection, tenant="acme")
    for _ in range(12):
        await bot.publish("anna", "user", "x" * 900_000)
    with await gateway.connect() as client:
        await loop.sock_sendall(
            client,
            "GET /v1/changes HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {gateway.issued.text}\r\n\r\n".encode(),
        )
        async with asyncio.timeout(TIMEOUT):
            assert await loop.sock_recv(client, 1), "the answer begins"
        await gateway.keys.revoke(gateway.issued.stored.id)
        await until(lambda: not gateway.has_open_requests() and not is_open(client))


@pytest.mark.parametrize("sent", [b"", b"GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: "])
async def test_client_that_sends_no_request_is_disconnected(
    gateway: LocalGateway, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.2)
    loop = asyncio.get_running_loop()
    with await gateway.connect() as client:
        async with asyncio.timeout(TIMEOUT):
            with suppress(ConnectionError):  # the gateway may close the connection before it has read `sent`
                await loop.sock_sendall(client, sent)
                assert not await loop.sock_recv(client, 1)


async def test_large_answer_that_is_read_slowly_arrives_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 2**22

    async def answer(request: Request) -> Response:
        return PlainTextResponse(b"x" * size)

    async with connected(Starlette(routes=[Route("/", answer)]), monkeypatch) as connection:
        await connection.request()
        await until(lambda: connection.count_waiting() > 0)
        content, looks = b"", 0
        while waiting := connection.count_waiting():
            connection.pass_time()
            content += await connection.read_waiting(waiting - server.MIN_READ_BYTES)
            looks += 1
        body = content.partition(b"\r\n\r\n")[2]
        body += await connection.read(lambda part: len(body) + len(part) >= size)
        assert body == b"x" * size
        assert looks > 2


async def test_answer_of_a_client_that_reads_too_slowly_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(request: Request) -> Response:
        return PlainTextResponse(b"x" * 2**22)

    async with connected(Starlette(routes=[Route("/", answer)]), monkeypatch) as connection:
        await connection.request()
        await until(lambda: connection.count_waiting() > 0)
        connection.pass_time()
        assert is_open(connection.client)
        connection.pass_time()
        await until(lambda: not is_open(connection.client))


async def test_connection_is_in_use_until_after_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    is_due = asyncio.Event()

    async def parts() -> AsyncIterator[bytes]:
        yield b"first"
        await is_due.wait()
        yield b"last"

    async def answer(request: Request) -> Response:
        return StreamingResponse(parts())

    async with connected(Starlette(routes=[Route("/", answer)]), monkeypatch) as connection:
        await connection.request()
        await connection.read(lambda part: b"first" in part)
        connection.pass_time()
        is_due.set()
        assert (await connection.read(lambda part: part.endswith(b"0\r\n\r\n"))).startswith(b"4\r\nlast")
        await until(lambda: connection.protocol.cycle.response_complete)
        connection.pass_time()
        await connection.request()
        assert b"last" in await connection.read(lambda part: part.endswith(b"0\r\n\r\n"))


@pytest.mark.parametrize("is_known", [True, False])
async def test_key_is_accepted_without_a_lookup_only_if_it_was_accepted_before(
    gateway: LocalGateway, provider: RawProvider, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    provider.response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    own = {"Mnemon-Key": gateway.issued.text, "Authorization": "Bearer of-the-client"}
    async with gateway.open_client() as client:
        if is_known:
            assert (await client.get("/openai/v1/models")).status_code == 200
        forget_keys(gateway.keys, monkeypatch)
        for _ in range(2):
            assert (await client.get("/openai/v1/models", headers=own)).status_code == 200
            answer = await client.get("/openai/v1/models")
            assert answer.status_code == (200 if is_known else 503)


async def test_stream_continues_while_the_key_cannot_be_checked(
    gateway: LocalGateway, connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = MemoryClient(connection, tenant="acme")
    async with (
        asyncio.timeout(TIMEOUT),
        gateway.open_client() as client,
        client.stream("GET", "/v1/changes") as answer,
    ):
        lines = answer.aiter_lines()
        await bot.publish("anna", "user", "First")
        await read_event(lines, "First")
        forget_keys(gateway.keys, monkeypatch)
        for text in ("Second", "Third"):
            await bot.publish("anna", "user", text)
            await read_event(lines, text)
        monkeypatch.setattr(changes, "TAIL_TIMEOUT", 0)
        await bot.publish("anna", "user", "Fourth")
        assert not [line async for line in lines if "Fourth" in line]


async def test_client_that_leaves_a_stream_of_changes_logs_no_error(
    gateway: LocalGateway, connection: Client, caplog: pytest.LogCaptureFixture
) -> None:
    bot = MemoryClient(connection, tenant="acme")
    for number in range(60):
        await bot.publish("anna", "user", f"{number} " + "x" * 100_000)
    with await gateway.connect() as client:
        loop = asyncio.get_running_loop()
        head = f"GET /v1/changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {gateway.issued.text}\r\n\r\n"
        async with asyncio.timeout(TIMEOUT):
            await loop.sock_sendall(client, head.encode())
            received = b""
            while b"data: " not in received:
                received += await loop.sock_recv(client, 4096)
    await until(lambda: not gateway.has_open_requests())
    gc.collect()  # logs the exceptions of tasks and generators that nothing awaited
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def read_event(lines: AsyncIterator[str], text: str) -> None:
    async for line in lines:
        if text in line:
            return
    pytest.fail(f"the stream ended before {text!r}")


def forget_keys(keys: ApiKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty the cache of API keys, and refuse every lookup as one beyond `MAX_LOOKUPS`."""
    keys._present.clear()
    keys._known.clear()
    monkeypatch.setattr(api_keys, "MAX_LOOKUPS", 0)


@pytest.mark.parametrize(
    "location", ["http:abc", "http://[", "https://h:port/"], ids=["no host", "no address", "no port"]
)
async def test_odd_answer_of_the_provider_leaves_no_request_open(
    gateway: LocalGateway, provider: RawProvider, location: str
) -> None:
    provider.response = (
        f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    async with gateway.open_client() as client:
        answer = await client.get("/openai/v1/models")
    assert answer.status_code in (302, 502)
    await until(lambda: not gateway.has_open_requests())


async def test_cookies_of_the_provider_reach_no_other_client(
    gateway: LocalGateway, provider: RawProvider
) -> None:
    provider.response = (
        b"HTTP/1.1 200 OK\r\nSet-Cookie: session=of-the-first; Path=/\r\nContent-Length: 2\r\n"
        b"Connection: close\r\n\r\n{}"
    )
    for _ in range(2):
        async with gateway.open_client() as client:
            assert (await client.get("/openai/v1/models")).cookies["session"] == "of-the-first"
    assert len(provider.received) == 2
    assert not [each for each in provider.received if b"of-the-first" in each]


@pytest.mark.long
async def test_long_history_does_not_block_other_requests(
    gateway: LocalGateway, provider: RawProvider
) -> None:
    provider.response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    said = [{"role": "user", "content": str(number)} for number in range(100_000)]
    content = json.dumps({"model": "m", "user": "anna", "messages": said})
    busy = list[float]()

    async def measure_busy_loop() -> None:
        """Measure the processor time of this thread between turns of a task: a busy machine adds none."""
        while True:
            begun = time.thread_time()
            await asyncio.sleep(0.01)
            busy.append(time.thread_time() - begun)

    async with gateway.open_client() as client:
        begun = time.process_time()
        async with run_task(measure_busy_loop()):
            await client.post("/openai/v1/chat/completions", content=content)
        computed = time.process_time() - begun
    assert provider.received
    assert max(busy) < computed / 4


async def test_message_that_is_too_large_keeps_no_other_from_the_log(connection: Client) -> None:
    recorder = ConversationRecorder(MemoryAccess(connection))
    published = await connection.subscribe("chat.acme.>")
    thread = Thread("acme", "anna", None)
    async with recorder.run():
        asked = recorder.record_request(
            thread,
            [
                ChatMessage("user", "First"),
                ChatMessage("assistant", "x" * 2**20),
                ChatMessage("user", "Which?"),
            ],
        )
        assert await asked, "an answer would be stored, too"
    assert b"Which?" in (await published.next_msg(TIMEOUT)).data


async def test_head_of_a_shortened_history_is_not_published_again_before_it_is_persisted(
    connection: Client,
) -> None:
    async def answer_without_messages(request: Msg) -> None:
        await request.respond(HistoryReplyV1(seen_seq=0, messages=()).model_dump_json().encode())

    await connection.subscribe("ask.acme.anna.history.v1", cb=answer_without_messages)
    published = await connection.subscribe("chat.acme.>")
    recorder = ConversationRecorder(MemoryAccess(connection))
    thread = Thread("acme", "anna", None)
    first, second, third = (ChatMessage("user", text) for text in ("First", "Second", "Third"))
    async with recorder.run():
        assert await recorder.record_request(thread, [first, second])
        assert await recorder.record_request(thread, [second, third])
    received = [json.loads((await published.next_msg(TIMEOUT)).data)["content"] for _ in range(3)]
    assert received == ["First", "Second", "Third"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/events"),
        ("POST", "/v1/users/anna/save"),
        ("PUT", "/v1/users/anna/documents/d1"),
        ("POST", "/mcp"),
        ("POST", "/openai/v1/chat/completions"),
        ("POST", "/anthropic/v1/messages"),
    ],
)
async def test_body_of_ten_megabytes_is_refused(gateway: LocalGateway, method: str, path: str) -> None:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Mnemon-User": "anna",
    }
    async with gateway.open_client() as client:
        answer = await client.request(method, path, content=b" " * 10_000_000, headers=headers)
    assert answer.status_code == 413
    assert path == "/mcp" or answer.json()["code"] == "too_large", "MCP has a limit and a format of its own"
    assert not gateway.has_open_requests()


async def test_reply_larger_than_an_event_reaches_the_client(
    connection: Client, gateway: LocalGateway
) -> None:
    """A request and an event have at most 1 MiB; a reply may have more."""
    content = "x" * 2**20
    message = {"role": "user", "content": content, "seq": 1, "id": "m1", "sent_at": "2026-01-01T00:00:00Z"}
    reply = {"seen_seq": 2, "conversation": "c1", "messages": [message, {**message, "seq": 2, "id": "m2"}]}

    async def answer_history(request: Msg) -> None:
        await request.respond(json.dumps(reply).encode())

    await connection.subscribe("ask.acme.anna.history.v1", cb=answer_history)
    async with gateway.open_client() as client:
        answer = await client.post("/v1/users/anna/history", json={})
    assert answer.status_code == 200
    assert answer.json() == reply


async def test_body_that_does_not_arrive_is_refused(
    gateway: LocalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_limits, "BODY_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection(gateway.url.host, gateway.url.port)
    writer.write(
        "POST /v1/users/anna/save HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        f"Authorization: Bearer {gateway.issued.text}\r\n\r\n{{".encode()
    )
    async with asyncio.timeout(TIMEOUT):
        assert (await reader.readline()).split()[1] == b"408"
    await until(lambda: not gateway.has_open_requests())
    writer.close()
