"""The patches of nats-py: each returns the same results as nats-py wherever nats-py is correct."""

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec, module_from_spec

import nats.errors
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig

from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import InvalidSubject, decode_token
from mnemon_infra.broker import patches
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.outcomes import ACK, DeliveryOutcome
from mnemon_infra.config import Deployment
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import BatchPolicy, DurableConsumer

SUBJECT = "chat.acme.u1.-.message.v1"


@pytest.fixture(autouse=True)
def _patched() -> None:
    patches.apply()


def unpatched_header_parser() -> Callable[[bytes], dict[str, str]]:
    """Return nats-py's own parser, from a copy of its module without patches."""
    spec = find_spec("nats.aio.client")
    assert spec is not None
    assert spec.loader is not None
    copy = module_from_spec(spec)
    spec.loader.exec_module(copy)
    parser: Callable[[bytes], dict[str, str]] = copy.Client._parse_header_lines
    return parser


parse_as_nats_py = unpatched_header_parser()


async def delivered(connection: Client) -> None:
    """Wait until the connection has received the messages that were published on it."""
    # nats-py sends its first ping before pending messages; only the second ping follows them.
    await connection.flush()
    await connection.flush()


async def pull(connection: Client) -> JetStreamContext.PullSubscription:
    return await connection.jetstream().pull_subscribe_bind("persist", LOG)


async def test_a_fetch_whose_time_is_up_raises_what_faststream_expects(
    connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connection.jetstream().add_consumer(LOG, ConsumerConfig(durable_name="one", max_waiting=1))
    subscription = await connection.jetstream().pull_subscribe_bind("one", LOG)
    # Another request waits already, so the server refuses the first one; the time is up before the second.
    await connection.subscribe("another")
    await connection.publish(
        f"$JS.API.CONSUMER.MSG.NEXT.{LOG}.one", b'{"batch": 1, "expires": 60000000000}', reply="another"
    )
    monkeypatch.setattr(JetStreamContext, "_time_until", staticmethod(lambda timeout, start: -1))
    with pytest.raises(TimeoutError) as its_own:
        await patches._fetch(subscription, 10, 5)
    assert not isinstance(its_own.value, nats.errors.TimeoutError), "nats-py is repaired: drop the patch"
    with pytest.raises(nats.errors.TimeoutError):
        await subscription.fetch(10, 5)


@pytest.mark.long
async def test_fetch_returns_available_messages(connection: Client) -> None:
    subscription = await pull(connection)
    for number in range(3):
        await connection.jetstream().publish(SUBJECT, str(number).encode())
    found = await subscription.fetch(10, 5)
    assert [message.data for message in found] == [b"0", b"1", b"2"]
    with pytest.raises(nats.errors.TimeoutError):
        await subscription.fetch(10, 0.05)


async def test_fetch_of_a_batch_requests_its_heartbeat(connection: Client) -> None:
    requests = await connection.subscribe(f"$JS.API.CONSUMER.MSG.NEXT.{LOG}.persist")
    subscription = await pull(connection)
    with pytest.raises(nats.errors.TimeoutError):
        await subscription.fetch(10, 0.3, heartbeat=0.1)
    await delivered(connection)
    assert json.loads((await requests.next_msg()).data)["idle_heartbeat"] == 100_000_000


async def test_batch_of_large_messages_ends_early(connection: Client) -> None:
    """A server closes a connection for which more than 64 MB, its default, wait to be sent."""
    subscription = await pull(connection)
    sizes = [1_000_000] * 10 + [patches.BATCH_BYTES + 1] + [1_000] * 3
    for size in sizes:
        await connection.jetstream().publish(SUBJECT, bytes(size))
    batches: list[list[int]] = []
    while sum(map(len, batches)) < len(sizes):
        with suppress(nats.errors.TimeoutError):  # the next message exceeds the bytes left in the request
            batches.append([len(message.data) for message in await subscription.fetch(100, 0.5)])
    assert [size for batch in batches for size in batch] == sizes
    assert max(sum(batch) for batch in batches if len(batch) > 1) <= patches.BATCH_BYTES


@pytest.mark.long
async def test_no_batch_is_dropped_when_its_time_is_up(connection: Client, nats_url: str) -> None:
    """Redelivery of a dropped batch would take `ack_wait`, which is longer than the test's timeout."""
    count = 400
    taken: list[Delivery] = []
    complete = asyncio.Event()

    async def take(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        taken.extend(deliveries)
        if len(taken) == count:
            complete.set()
        return [ACK] * len(deliveries)

    await connection.jetstream().add_consumer(LOG, ConsumerConfig(durable_name="taker", ack_wait=300))
    broker = Broker(Deployment(nats_url=nats_url), "taker")
    broker.subscribe_durable(DurableConsumer("taker", LOG, "Test", BatchPolicy(5, 0.004, overlap=2)), take)
    async with broker.connect(), broker.run():
        chance = random.Random(1)
        for number in range(count):
            await connection.publish(SUBJECT, str(number).encode())
            if chance.random() < 0.5:
                # Vary the gaps between messages around the linger of 4 ms; no assertion depends on them.
                await asyncio.sleep(chance.uniform(0, 0.008))
        await asyncio.wait_for(complete.wait(), 60)
    assert sorted(int(each.body) for each in taken) == list(range(count))
    assert {each.deliveries for each in taken} == {1}


async def test_received_message_is_returned_and_leaves_the_pending_counts(connection: Client) -> None:
    subscription = await connection.subscribe("anything")
    for body in (b"a", b"bcd", b""):
        await connection.publish("anything", body)
    await delivered(connection)
    assert (subscription.pending_msgs, subscription.pending_bytes) == (3, 4)
    assert (await subscription.next_msg()).data == b"a"
    assert (subscription.pending_msgs, subscription.pending_bytes) == (2, 3)
    assert [(await subscription.next_msg()).data for _ in range(2)] == [b"bcd", b""]
    assert (subscription.pending_msgs, subscription.pending_bytes) == (0, 0)
    # `drain` ends only when each received message is marked as done.
    await asyncio.wait_for(subscription.drain(), 60)  # type: ignore[no-untyped-call]


async def test_a_message_that_comes_later_is_waited_for(connection: Client) -> None:
    subscription = await connection.subscribe("anything")
    waiting = asyncio.create_task(subscription.next_msg(60))
    await connection.publish("anything", b"abc")
    assert (await waiting).data == b"abc"
    assert subscription.pending_bytes == 0


async def test_waiting_for_a_message_times_out(connection: Client) -> None:
    subscription = await connection.subscribe("anything")
    with pytest.raises(nats.errors.TimeoutError):
        await subscription.next_msg(0.02)


async def test_next_message_of_a_closed_connection_raises(connection: Client) -> None:
    subscription = await connection.subscribe("anything")
    await connection.publish("anything", b"abc")
    await delivered(connection)
    assert subscription.pending_msgs == 1
    await connection.close()
    with pytest.raises(nats.errors.ConnectionClosedError):
        await subscription.next_msg()


async def test_a_connection_that_closes_ends_the_wait(connection: Client) -> None:
    subscription = await connection.subscribe("anything")
    waiting = asyncio.create_task(subscription.next_msg(60))
    await connection.flush()
    await connection.close()
    with pytest.raises(nats.errors.ConnectionClosedError):
        await asyncio.wait_for(waiting, 60)


async def test_a_subscription_with_a_callback_is_not_asked(connection: Client) -> None:
    async def ignore(_: object) -> None:
        pass

    subscription = await connection.subscribe("anything", cb=ignore)
    with pytest.raises(nats.errors.Error, match="async subscriptions"):
        await subscription.next_msg()


_PIECES = st.sampled_from(
    [
        b"Nats-Msg-Id",
        b"id",
        b"a b",
        b"\tname ",
        b":",
        b": ",
        b":\t",
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\xff",
        b"\x85",
        b"",
    ]
)
_HEADERS = st.lists(_PIECES | st.binary(max_size=4) | st.text(max_size=4).map(str.encode), max_size=12).map(
    b"".join
)


@pytest.mark.long
@given(_HEADERS)
@example(b"Name: value\r\nName: again\r\n\r\n")
@example(b": without a name\r\n")
@example("имя: значение\r\nname: значение\r\n".encode())
def test_header_lines_are_read_as_nats_py_reads_them(raw: bytes) -> None:
    raw = raw.decode(errors="ignore").encode()  # for bytes that are not UTF-8, the patch differs from nats-py
    assert patches.parse_header_lines(raw) == parse_as_nats_py(raw)
    assert patches.parse_header_lines(raw) == parse_as_nats_py(raw), "the second time from memory"


@given(st.sets(st.binary(max_size=4).filter(lambda value: value.strip() == value and b"\r" not in value)))
def test_different_header_values_stay_different(values: set[bytes]) -> None:
    read = {patches.parse_header_lines(b"Nats-Msg-Id: %b\r\n" % value)["Nats-Msg-Id"] for value in values}
    assert len(read) == len(values)


@pytest.mark.parametrize(
    "characters", [b"\xff", b"\xc3", b"\x0b", b"\x0c", b"\x00", b"\x1c", "\u2003".encode()]
)
@pytest.mark.parametrize("headers", [None, {"X-Bot": "b"}], ids=["bare", "with headers"])
async def test_a_subject_of_any_bytes_ends_no_connection(
    connection: Client, characters: bytes, headers: dict[str, str] | None
) -> None:
    subscription = await connection.subscribe("ask.>")
    subject = patches._decode_text(b"ask.acme.%b.history.v1" % characters)
    command = b"PUB ask.acme.%b.history.v1 2\r\n{}\r\n" % characters
    if headers:
        command = b"HPUB ask.acme.%b.history.v1 22 24\r\nNATS/1.0\r\nX-Bot: b\r\n\r\n{}\r\n" % characters
    await connection._send_command(command)
    await connection.publish("ask.acme.u1.history.v1", b"{}")
    first, second = [await subscription.next_msg(60) for _ in range(2)]
    assert (first.subject, first.headers, first.data) == (subject, headers, b"{}")
    assert second.subject == "ask.acme.u1.history.v1"


@given(st.binary(min_size=1, max_size=4), st.sampled_from([b"", b"%C2", b"%A0"]))
def test_bytes_that_are_not_utf_8_spell_no_id(characters: bytes, beside: bytes) -> None:
    for token in characters + beside, beside + characters:
        with suppress(UnicodeDecodeError):
            token.decode()
            continue
        with pytest.raises(InvalidSubject):
            decode_token(patches._decode_text(token))


def test_cache_of_header_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[bytes, str] = {}
    monkeypatch.setattr(patches, "_header_names", known)
    long = b"x" * 100_000
    assert patches.parse_header_lines(long + b": 1") == {long.decode(): "1"}
    for number in range(3000):
        raw = b"name-%d: %d" % (number, number)
        assert patches.parse_header_lines(raw) == {f"name-{number}": str(number)}
    assert 0 < len(known) < 3000
    assert sum(map(len, known)) < 100_000


async def test_headers_arrive(connection: Client) -> None:
    subscription = await connection.subscribe("anything")
    headers = {"Nats-Msg-Id": "1", "X-Bot": "Пётр"}
    await connection.publish("anything", b"", headers=headers)
    message = await subscription.next_msg(60)
    assert message.headers == headers
    assert Client._parse_header_lines is patches.parse_header_lines


async def test_consumers_continue_beside_a_missing_consumer(
    connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FastStream repeats a failed fetch without a pause; each attempt must let other tasks run."""
    monkeypatch.setattr(patches, "PAUSE", 0.001)
    subscription = await pull(connection)
    await connection.close()
    turns = 0

    async def go_on() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(go_on())
    with pytest.raises(nats.errors.ConnectionClosedError):
        await subscription.fetch(10, 5)
    other.cancel()
    assert turns


@pytest.mark.long
async def test_an_idle_fetch_waits_for_the_first_message(
    connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patches, "IDLE_WAIT", 600.0)
    subscription = await pull(connection)
    with pytest.raises(nats.errors.TimeoutError):
        await subscription.fetch(10, 0.02)
    waiting = asyncio.create_task(subscription.fetch(10, 0.02))
    done, _ = await asyncio.wait([waiting], timeout=0.2)
    assert not done, "it asks the server once, not every 20 ms"
    await connection.jetstream().publish(SUBJECT, b"first")
    assert [message.data for message in await waiting] == [b"first"]
    await connection.jetstream().publish(SUBJECT, b"second")
    assert [message.data for message in await subscription.fetch(10, 5)] == [b"second"]
    with pytest.raises(nats.errors.TimeoutError):
        await asyncio.wait_for(subscription.fetch(10, 0.02), 60)
