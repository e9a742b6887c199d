"""Reading of a stream in pages, from a position to the end, also when the consumer is lost."""

from contextlib import aclosing

import nats.errors
import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon_bench.workloads.messages import fill_log
from mnemon_contracts.streams import DEAD, LOG
from mnemon_infra.broker.streams import log_reader, stream_reader
from mnemon_infra.broker.streams.stream_reader import PAGE, PAGE_BYTES, StreamMessage, read_stream

SUBJECT = "chat.acme.u1.-.message.v1"


async def read(connection: Client, up_to: int, *, headers_only: bool = False) -> list[list[StreamMessage]]:
    async with aclosing(read_stream(connection, LOG, up_to=up_to, headers_only=headers_only)) as pages:
        return [page async for page in pages]


def positions(pages: list[list[StreamMessage]]) -> list[int]:
    return [delivery.sequence for page in pages for _, delivery in page]


async def test_reader_stops_at_a_position_and_skips_gaps(connection: Client) -> None:
    await fill_log(connection, 2 * PAGE + 10)
    jetstream = connection.jetstream()
    for gone in (1, 7, PAGE, PAGE + 1, 2 * PAGE + 10):
        assert await jetstream.delete_msg(LOG, gone)
    there = [each for each in range(2, 2 * PAGE + 10) if each not in (7, PAGE, PAGE + 1)]
    assert positions(await read(connection, 2 * PAGE + 10)) == there
    assert positions(await read(connection, 9)) == [2, 3, 4, 5, 6, 8, 9]
    assert await read(connection, 0) == []
    assert await jetstream.consumers_info(DEAD) == []


async def test_reader_starts_at_a_position_in_sized_pages(connection: Client) -> None:
    await fill_log(connection, 50)
    assert await connection.jetstream().delete_msg(LOG, 20)
    pages = [page async for page in read_stream(connection, LOG, after=10, up_to=40, page=7)]
    assert positions(pages) == [each for each in range(11, 41) if each != 20]
    assert max(map(len, pages)) == 7
    assert [page async for page in read_stream(connection, LOG, after=50, up_to=50)] == []
    assert positions([page async for page in read_stream(connection, LOG, after=47, up_to=99)]) == [
        48,
        49,
        50,
    ]


async def test_a_page_is_limited_in_bytes(connection: Client) -> None:
    size = 1_000_000
    count = PAGE_BYTES // size + 4
    for _ in range(count):
        await connection.jetstream().publish(SUBJECT, b"x" * size)
    pages = await read(connection, count)
    assert positions(pages) == list(range(1, count + 1))
    assert len(pages) > 1
    assert all(sum(len(message.data) for message, _ in page) <= PAGE_BYTES for page in pages)
    headers = await read(connection, count, headers_only=True)
    assert positions(headers) == positions(pages)
    assert not any(message.data for page in headers for message, _ in page)


async def test_a_message_larger_than_a_page_comes_alone(
    connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "PAGE_BYTES", 100_000)
    sizes = [200_000, 10, 10, 200_000, 200_000, 10, 200_000]
    for size in sizes:
        await connection.jetstream().publish(SUBJECT, b"x" * size)
    pages = await read(connection, len(sizes))
    assert [[len(message.data) for message, _ in page] for page in pages] == [
        [200_000],
        [10, 10],
        [200_000],
        [200_000],
        [10],
        [200_000],
    ]


async def test_reader_recreates_a_lost_consumer(connection: Client) -> None:
    await fill_log(connection, 3 * PAGE)
    jetstream = connection.jetstream()
    kept = {each.name for each in await jetstream.consumers_info(LOG)}
    pages = []
    async with aclosing(read_stream(connection, LOG, up_to=3 * PAGE)) as reading:
        async for page in reading:
            pages.append(page)
            for each in await jetstream.consumers_info(LOG):
                if each.name not in kept:
                    await jetstream.delete_consumer(LOG, each.name)
    assert positions(pages) == list(range(1, 3 * PAGE + 1))
    assert {each.name for each in await jetstream.consumers_info(LOG)} == kept


async def test_an_event_is_the_same_however_it_is_read(connection: Client) -> None:
    headers = {"Nats-Msg-Id": "m1", "traceparent": "00-1-2-01"}
    await connection.jetstream().publish(SUBJECT, "чай".encode(), stream=LOG, headers=headers)
    await fill_log(connection, 20, first=1)
    (together,) = [page async for page in log_reader.read_event_pages(connection, ">", 0)]
    assert [await log_reader.read_delivery(connection, each.sequence) for each in together] == together
    assert (together[0].message_id, together[0].traceparent) == ("m1", "00-1-2-01")
    with pytest.raises(NotFoundError):
        await log_reader.read_delivery(connection, 99)


async def test_reader_names_a_missing_stream(connection: Client) -> None:
    await connection.jetstream().delete_stream(LOG)
    with pytest.raises(nats.errors.Error):
        await read(connection, 1)
