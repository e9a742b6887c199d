"""Patches of nats-py 2.16: fetches of FastStream's pull subscribers, TLS, and the parsing of messages."""

import asyncio
import codecs
import json
import re
import time
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport
from nats.js.client import JetStreamContext
from nats.js.errors import ServiceUnavailableError
from nats.protocol import parser

PAUSE = 0.5
"""Seconds before a fetch is retried after a closed connection or an unavailable service."""

IDLE_WAIT = 1.0
"""Seconds for which an idle consumer waits for a message before it asks the server again."""

STATUS_WAIT = 1.0
"""Seconds to wait for the last messages or the final status of a request that has expired."""

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Maximum bytes of a batch of several messages.

A server closes a connection for which more than 64 MB wait to be sent, and a consumer has up to 16 open
requests.
"""

_fetch = JetStreamContext.PullSubscription.fetch
_next_msg = Subscription.next_msg
_connect_tls = TcpTransport.connect_tls
_idle: WeakSet[JetStreamContext.PullSubscription] = WeakSet()
_header_names: dict[bytes, str] = {}


async def fetch(
    self: JetStreamContext.PullSubscription,
    batch: int = 1,
    timeout: float | None = 5,  # noqa: ASYNC109 - the signature is nats-py's
    heartbeat: float | None = None,
) -> list[Msg]:
    """Fetch a batch with the errors that FastStream expects, and wait longer while no messages come.

    FastStream catches nats-py's own TimeoutError only. On the builtin TimeoutError, FastStream drops the
    messages that the batch has collected so far. The server redelivers these messages only after `ack_wait`:
    1 to 8 % of all messages were that late.

    FastStream's `timeout` is the time in which a batch collects messages. An idle consumer would also ask the
    server at this interval: fifty times a second, which takes a tenth of a processor core. So a fetch
    after a fetch without messages waits up to `IDLE_WAIT` for the first message, and returns with it at once.

    If the connection is closed or the service unavailable, FastStream retries at once, and no other task
    runs. So the fetch pauses before it raises.
    """
    try:
        if self in _idle:
            messages = await _fetch(self, 1, IDLE_WAIT, heartbeat)
        elif batch == 1 or timeout is None or heartbeat is not None:
            messages = await _fetch(self, batch, timeout, heartbeat)
        else:
            messages = await _collect_batch(self, batch, timeout)
    except (nats.errors.ConnectionClosedError, ServiceUnavailableError):
        await asyncio.sleep(PAUSE)
        raise
    except TimeoutError as error:
        _idle.add(self)
        raise nats.errors.TimeoutError from error
    _idle.discard(self)
    return messages


async def _collect_batch(consumer: JetStreamContext.PullSubscription, batch: int, linger: float) -> list[Msg]:
    """Request messages, and collect them until the batch is full or the server ends the request.

    The server ends a request when the next message would exceed `BATCH_BYTES`. A message that is larger comes
    with the fetch of one message that follows a fetch without messages.

    nats-py's own fetch stops after `linger` seconds by this process's clock. A process that is writing
    another batch reads late, so that the batches of a busy stream would end half empty.

    Any status ends the request, so a consumer that is missing on the server looks idle here. The fetch of one
    message that follows an idle fetch raises the status as an `APIError`, such as `ServiceUnavailableError`;
    nats-py takes the statuses 404, 408 and 409 for a timeout.

    Raises:
        TimeoutError: no message has arrived.
    """
    subscription, queue = consumer._sub, consumer._sub._pending_queue
    messages: list[Msg] = []
    while len(messages) < batch and not queue.empty():
        message = _take_message(subscription)
        if JetStreamContext.is_status_msg(message) is None:  # a status belongs to an earlier request
            messages.append(message)
    if len(messages) == batch:
        return messages
    # Without `no_wait` the server holds the request until it is full or expires.
    limits = {"no_wait": True} if messages else {"expires": max(1, int(linger * 1e9))}
    request = {"batch": batch - len(messages), "max_bytes": BATCH_BYTES, **limits}
    await consumer._nc.publish(consumer._nms, json.dumps(request).encode(), consumer._deliver)
    end = time.monotonic() + linger + STATUS_WAIT
    with suppress(TimeoutError):
        while len(messages) < batch:
            if queue.empty():
                message = await subscription.next_msg(max(0.0, end - time.monotonic()))
            else:
                message = _take_message(subscription)
            if JetStreamContext.is_status_msg(message) is not None:
                break
            messages.append(message)
    if not messages:
        raise TimeoutError
    return messages


async def next_msg(self: Subscription, timeout: float | None = 1.0) -> Msg:  # noqa: ASYNC109
    """Return the next message; a message that has arrived already is taken straight from the queue.

    nats-py spends a uuid4, a task and a `wait_for` on each message: without them a fetch is 2.3 times as
    fast.
    """
    queue: asyncio.Queue[Msg] = self._pending_queue
    if queue.empty() or self._conn.is_closed or self._cb:
        return await _next_msg(self, timeout)
    return _take_message(self)


def _take_message(subscription: Subscription) -> Msg:
    queue: asyncio.Queue[Msg] = subscription._pending_queue
    message = queue.get_nowait()
    subscription._pending_size -= len(message.data)
    queue.task_done()
    return message


async def connect_tls(self: Any, *arguments: Any, **options: Any) -> None:
    """Encrypt a connection.

    nats-py does not tell asyncio's protocol that the connection is encrypted, so that asyncio logs a warning
    at the end of each.
    """
    await _connect_tls(self, *arguments, **options)
    self._io_writer.transport.get_protocol()._over_ssl = True


def parse_header_lines(raw: bytes) -> dict[str, str]:
    """Parse a header block. The check of a header name is cached, for up to 1,024 names.

    nats-py checks every character of every name of every message, which takes two fifths of the time of a
    fetch.
    """
    headers: dict[str, str] = {}
    for line in raw.split(b"\r\n"):
        name, separator, value = line.partition(b":")
        if not separator:
            continue
        key = _header_names.get(name)
        if key is None:
            key = _parse_header_name(name)
            if key is None:
                continue
            # Clients choose the names, so the cache is bounded.
            if len(_header_names) < 1024 and len(name) <= 256:
                _header_names[name] = key
        headers[key] = _decode_text(value.strip())
    return headers


def build_message(
    self: Client, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None
) -> Msg:
    """Build a message whose subject may have any bytes.

    Servers take any bytes in a subject. nats-py stops reading from the connection at a subject that is
    not UTF-8.
    """
    return self.msg_class(
        _client=self,
        _sid=sid,
        subject=_decode_text(subject),
        reply=_decode_text(reply),
        data=data,
        headers=headers,
    )


def _decode_text(value: bytes) -> str:
    return value.decode("utf-8", _DOUBLE_PERCENT)


def _escape_bytes(error: UnicodeError) -> tuple[str, int]:
    """Return text such as `%%FF` in place of bytes that are not UTF-8, and the position after these bytes.

    No id in a subject can contain `%%`. Different bytes give different texts: if two ids became one, the
    second event would be lost.
    """
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"%%{byte:02X}" for byte in error.object[error.start : error.end]), error.end


_DOUBLE_PERCENT: Final = "mnemon-double-percent"
codecs.register_error(_DOUBLE_PERCENT, _escape_bytes)


_MESSAGE: Final = re.compile(rb"\AMSG[ \t]+([^ \t\r\n]+)[ \t]+(\d+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)\r\n")
_MESSAGE_WITH_HEADERS: Final = re.compile(
    rb"\AHMSG[ \t]+([^ \t\r\n]+)[ \t]+(\d+)[ \t]+(([^ \t\r\n]+)[ \t]+)?(\d+)[ \t]+(\d+)\r\n"
)
"""Pattern of the first line of a message with headers in the NATS protocol.

nats-py's own pattern ends a subject at a vertical tab or a form feed, which servers accept within a subject.
nats-py then closes the connection, without a reconnect, when it reads the rest of the line.
"""


def apply() -> None:
    """Install the patches. A second call changes nothing."""
    patched: Any = JetStreamContext.PullSubscription
    patched.fetch = fetch
    patched = Subscription
    patched.next_msg = next_msg
    patched = Client
    patched._parse_header_lines = staticmethod(parse_header_lines)
    patched._build_message = build_message
    patched = TcpTransport
    patched.connect_tls = connect_tls
    patched = parser
    patched.MSG_RE, patched.HMSG_RE = _MESSAGE, _MESSAGE_WITH_HEADERS


def _parse_header_name(name: bytes) -> str | None:
    try:
        key = name.strip().decode("ascii")
    except UnicodeDecodeError:
        return None
    return None if any(character.isspace() for character in key) else key
