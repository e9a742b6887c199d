"""Publishing by the client through a real NATS server, also when the connection or the server fails."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_contracts.base import BODY_LIMIT, InvalidBody
from mnemon_contracts.events.chat import MessageV1, StartedV1
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import InvalidId
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import PublishFailed
from mnemon_producers.events import ChatEvent
from mnemon_producers.publisher import BATCH_BYTES, BATCH_MESSAGES, Published
from mnemon_producers.timeouts import Timeouts
from tests.support.servers.unreliable_link import link_to

IMPATIENT = Timeouts(publish=0.5, retry=0.5, ask=0.5)


def messages(numbers: range, *, ids: bool = True, content: str = "{}") -> Iterator[ChatEvent]:
    for number in numbers:
        message = MessageV1(role="user", content=content.format(number), id=f"m{number}" if ids else None)
        yield ChatEvent(f"u{number % 7}", message)


async def stored(connection: Client) -> list[tuple[str, str, dict[str, str]]]:
    """Return subject, content and headers of each message in the log, in log order."""
    jetstream = connection.jetstream()
    count = (await jetstream.stream_info(LOG)).state.messages
    found: list[tuple[str, str, dict[str, str]]] = []
    complete = asyncio.Event()

    async def take(message: Msg) -> None:
        found.append((message.subject, MessageV1.parse(message.data).content, message.headers or {}))
        if len(found) == count:
            complete.set()

    if count:
        subscription = await jetstream.subscribe(">", stream=LOG, ordered_consumer=True, cb=take)
        await asyncio.wait_for(complete.wait(), 20)
        await subscription.unsubscribe()
    return found


async def contents(connection: Client) -> list[str]:
    return [content for _, content, _ in await stored(connection)]


async def test_a_publish_gives_its_position(memory_client: MemoryClient, connection: Client) -> None:
    assert [await memory_client.publish("u1", "user", content) for content in ("a", "b")] == [1, 2]
    assert await contents(connection) == ["a", "b"]


async def test_the_same_id_twice_is_one_message(memory_client: MemoryClient, connection: Client) -> None:
    first = await memory_client.publish("u1", "user", "a", id="x")
    assert await memory_client.publish("u1", "user", "a", id="x") == first
    assert await contents(connection) == ["a"]


async def test_every_message_has_an_id_and_names_the_stream(
    memory_client: MemoryClient, connection: Client
) -> None:
    await memory_client.publish("u1", "user", "a")
    await memory_client.publish_many(messages(range(3), ids=False))
    headers = [headers for _, _, headers in await stored(connection)]
    assert len({each["Nats-Msg-Id"] for each in headers}) == 4
    assert headers[0]["Nats-Expected-Stream"] == LOG
    assert headers[-1]["Nats-Expected-Stream"] == LOG


async def test_id_of_any_characters_is_encoded_in_the_subject(
    memory_client: MemoryClient, connection: Client
) -> None:
    await memory_client.publish("Пётр 1.2", "user", "a", conversation="-")
    assert [subject for subject, _, _ in await stored(connection)] == [
        "chat.acme.Пётр%201%2E2.%2D.message.v1"
    ]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"role": "usr"}, "role"),
        ({"content": "a\0b"}, "content"),
        ({"content": "\ud800"}, "content"),
        ({"content": "x" * BODY_LIMIT}, "body"),
        ({"id": "ends with a line\n"}, "id"),
        ({"tool_calls": [{"id": "no name"}]}, "tool_calls.0.name"),
    ],
)
async def test_a_wrong_message_is_named_and_not_sent(
    memory_client: MemoryClient, connection: Client, arguments: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidBody) as refused:
        await memory_client.publish(**{"user": "u1", "role": "user", "content": "a", **arguments})  # type: ignore[arg-type]
    assert refused.value.field == field
    assert await contents(connection) == []


@pytest.mark.parametrize("user", ["", "a\0b", "x" * 256, "\ud800", 42])
async def test_a_wrong_user_is_named_and_not_sent(
    memory_client: MemoryClient, connection: Client, user: str
) -> None:
    with pytest.raises(InvalidId, match="user: "):
        await memory_client.publish(user, "user", "a")
    assert await contents(connection) == []


async def test_many_go_in_atomic_batches_in_their_order(
    memory_client: MemoryClient, connection: Client
) -> None:
    told: list[Published] = []
    done = await memory_client.publish_many(messages(range(2500), ids=False), progress=told.append)
    assert done == Published(2500, 0, 2500)
    assert [each.count for each in told] == [1000, 2000, 2500]
    log = await stored(connection)
    assert [content for _, content, _ in log] == [str(number) for number in range(2500)]
    assert len({headers["Nats-Batch-Id"] for _, _, headers in log}) == 3


async def test_two_or_three_batches_are_ahead_of_the_log(memory_client: MemoryClient) -> None:
    published = Published()
    ahead: list[int] = []

    def note(progress: Published) -> None:
        nonlocal published
        published = progress

    def told() -> Iterator[ChatEvent]:
        for number, event in enumerate(messages(range(6 * BATCH_MESSAGES)), 1):
            ahead.append(number - published.count)
            yield event

    assert (await memory_client.publish_many(told(), progress=note)).count == 6 * BATCH_MESSAGES
    assert 2 * BATCH_MESSAGES < max(ahead) <= 3 * BATCH_MESSAGES


async def test_publish_many_accepts_an_async_iterator_of_several_kinds(
    memory_client: MemoryClient, connection: Client
) -> None:
    async def live() -> AsyncIterator[ChatEvent]:
        yield ChatEvent("u1", StartedV1(discard_previous=True), "c1")
        yield ChatEvent("u1", MessageV1(role="user", content="a"), "c1")

    assert (await memory_client.publish_many(live())).count == 2
    info = await connection.jetstream().stream_info(LOG, subjects_filter=">")
    assert info.state.subjects == {"chat.acme.u1.c1.started.v1": 1, "chat.acme.u1.c1.message.v1": 1}


async def test_empty_sequence_publishes_nothing(memory_client: MemoryClient) -> None:
    assert await memory_client.publish_many([]) == Published()


async def test_large_messages_make_small_batches(memory_client: MemoryClient, connection: Client) -> None:
    content = "{} " + "x" * (BODY_LIMIT - 1000)
    assert (await memory_client.publish_many(messages(range(10), content=content))).count == 10
    batches = [headers["Nats-Batch-Id"] for _, _, headers in await stored(connection)]
    assert max(batches.count(batch) for batch in batches) <= BATCH_BYTES // (BODY_LIMIT - 1000)


async def test_events_are_read_at_the_pace_of_the_log(memory_client: MemoryClient) -> None:
    taken = 0
    ahead = []

    def counted() -> Iterator[ChatEvent]:
        nonlocal taken
        for event in messages(range(10_000)):
            taken += 1
            yield event

    await memory_client.publish_many(
        counted(), progress=lambda published: ahead.append(taken - published.count)
    )
    assert len(ahead) == 10
    assert max(ahead) <= 2 * BATCH_MESSAGES + 1


async def test_existing_messages_are_left_out_of_a_batch(
    memory_client: MemoryClient, connection: Client
) -> None:
    await memory_client.publish_many(messages(range(500)))
    done = await memory_client.publish_many(messages(range(1500)))
    assert (done.count, done.duplicates, done.last_seq) == (1500, 500, 1500)
    assert await contents(connection) == [str(number) for number in range(1500)]


async def test_an_id_twice_in_a_batch_is_one_message(memory_client: MemoryClient, connection: Client) -> None:
    done = await memory_client.publish_many([*messages(range(3)), *messages(range(2, 5))])
    assert (done.count, done.duplicates) == (6, 1)
    assert await contents(connection) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("old", [range(3), range(2, 3), range(1)])
async def test_the_last_position_is_the_highest_among_new_and_known_events(
    memory_client: MemoryClient, connection: Client, old: range
) -> None:
    await memory_client.publish_many(messages(range(3)))
    for events in ([*messages(range(3, 6)), *messages(old)], [*messages(old), *messages(range(6, 9))]):
        done = await memory_client.publish_many(events)
        end = (await connection.jetstream().stream_info(LOG)).state.last_seq
        assert (done.count, done.duplicates, done.last_seq) == (3 + len(old), len(old), end)


async def test_the_last_position_is_the_highest_of_all_batches(memory_client: MemoryClient) -> None:
    told: list[Published] = []
    old = [*messages(range(BATCH_MESSAGES))]
    await memory_client.publish_many(old)
    new = messages(range(BATCH_MESSAGES, 2 * BATCH_MESSAGES))
    done = await memory_client.publish_many([*new, *old], progress=told.append)
    assert [each.last_seq for each in told] == [2 * BATCH_MESSAGES] * 2
    assert done == Published(2 * BATCH_MESSAGES, BATCH_MESSAGES, 2 * BATCH_MESSAGES)


async def test_events_before_an_invalid_one_are_published(
    memory_client: MemoryClient, connection: Client
) -> None:
    wrong = ChatEvent("", MessageV1(role="user", content="x"))
    told: list[Published] = []
    with pytest.raises(InvalidId, match="user"):
        await memory_client.publish_many([*messages(range(1500)), wrong], progress=told.append)
    assert told[-1].count == 1500
    assert await contents(connection) == [str(number) for number in range(1500)]


async def test_a_lost_answer_does_not_double_a_message(connection: Client, nats_url: str) -> None:
    async with (
        link_to(nats_url) as link,
        MemoryClient.connect(link.url, tenant="acme", timeouts=Timeouts(publish=1.0)) as memory,
    ):
        await memory.publish("u1", "user", "first")
        link.lose_answer = b'"seq":2'
        assert await memory.publish("u1", "user", "second") == 2
        assert link.cuts == 1
    assert await contents(connection) == ["first", "second"]


@pytest.mark.long
async def test_a_batch_whose_answer_is_lost_is_not_doubled(connection: Client, nats_url: str) -> None:
    async with (
        link_to(nats_url) as link,
        MemoryClient.connect(link.url, tenant="acme", timeouts=Timeouts(publish=3.0)) as memory,
    ):
        link.lose_answer = b'"batch":'
        done = await memory.publish_many(messages(range(3000), ids=False))
        assert (done.count, done.duplicates, link.cuts) == (3000, 1000, 1)
    assert await contents(connection) == [str(number) for number in range(3000)]


async def test_a_batch_that_is_cut_halfway_is_sent_again_whole(connection: Client, nats_url: str) -> None:
    async with (
        link_to(nats_url) as link,
        MemoryClient.connect(link.url, tenant="acme", timeouts=Timeouts(publish=5.0)) as memory,
    ):
        link.lose_sent = b"Nats-Batch-Sequence: 500"
        done = await memory.publish_many(messages(range(3000), ids=False))
        assert (done.count, done.duplicates, link.cuts) == (3000, 0, 1)
    assert await contents(connection) == [str(number) for number in range(3000)]


@pytest.mark.parametrize(("batch", "number"), [(1, 500), (2, 1), (3, 999)])
async def test_a_batch_of_which_a_part_is_lost_is_sent_again_whole(
    memory_client: MemoryClient, connection: Client, monkeypatch: pytest.MonkeyPatch, batch: int, number: int
) -> None:
    seen, lost = list[str](), list[str]()
    publish = connection.publish

    async def lose_one(subject: str, payload: bytes = b"", **options: Any) -> None:
        headers = options.get("headers") or {}
        batch_id = headers.get("Nats-Batch-Id")
        if batch_id and batch_id not in seen:
            seen.append(batch_id)
        is_wanted = batch_id in seen[batch - 1 : batch] and headers["Nats-Batch-Sequence"] == str(number)
        if is_wanted:
            lost.append(str(batch_id))
        else:
            await publish(subject, payload, **options)

    monkeypatch.setattr(connection, "publish", lose_one)
    done = await memory_client.publish_many(messages(range(3000), ids=False))
    monkeypatch.undo()

    assert done == Published(3000, 0, 3000)
    log = await stored(connection)
    assert [content for _, content, _ in log] == [str(number) for number in range(3000)]
    batches = {headers["Nats-Batch-Id"] for _, _, headers in log}
    assert len(lost) == 1
    assert len(seen) == 4
    assert batches == {*seen} - {*lost}


@dataclass
class Answering:
    """Replies to publishes in place of a stream: the answers in turn, then the last answer again."""

    answers: list[dict[str, Any]]
    asked: int = 0

    async def answer(self, message: Msg) -> None:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        await message.respond(json.dumps({"stream": LOG, **answer}).encode())


def refusal(code: int, err_code: int) -> dict[str, Any]:
    return {"error": {"code": code, "err_code": err_code, "description": "said so"}}


@pytest.mark.parametrize("answer", [refusal(500, 10074), refusal(503, 10077), refusal(400, 10176)])
async def test_transient_error_is_retried(nats_url: str, answer: dict[str, Any]) -> None:
    async with await connect(nats_url, name="test") as own:
        answering = Answering([answer, answer, {"seq": 7}])
        await own.subscribe("chat.>", cb=answering.answer)
        assert await MemoryClient(own, tenant="acme").publish("u1", "user", "a") == 7
        assert answering.asked == 3


@pytest.mark.parametrize("answer", [refusal(400, 10071), refusal(404, 10059), refusal(499, 10177)])
async def test_permanent_refusal_is_not_retried(nats_url: str, answer: dict[str, Any]) -> None:
    async with await connect(nats_url, name="test") as own:
        answering = Answering([answer])
        await own.subscribe("chat.>", cb=answering.answer)
        with pytest.raises(PublishFailed, match="said so") as failed:
            await MemoryClient(own, tenant="acme").publish("u1", "user", "a", id="x")
        assert (failed.value.event_id, failed.value.retryable) == ("x", False)
        assert answering.asked == 1


async def test_lasting_failure_is_raised_and_the_message_can_be_sent_again(nats_url: str) -> None:
    async with await connect(nats_url, name="test") as own:
        answering = Answering([refusal(503, 10077)])
        await own.subscribe("chat.>", cb=answering.answer)
        memory = MemoryClient(own, tenant="acme", timeouts=IMPATIENT)
        with pytest.raises(PublishFailed, match="the server said: said so") as failed:
            await memory.publish("u1", "user", "a", id="x")
        assert (failed.value.event_id, failed.value.retryable) == ("x", True)
        assert answering.asked > 1


async def test_a_server_that_restarts_is_waited_for(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, None)
    await server.start()
    try:
        async with MemoryClient.connect(server.url, tenant="acme", timeouts=Timeouts(publish=1.0)) as memory:
            connection = await connect(server.url, name="test")
            await provision(connection)
            restart: asyncio.Task[None] | None = None

            async def restarted() -> None:
                await server.stop()
                await server.start()

            def begin_restart(_: Published) -> None:
                nonlocal restart
                restart = restart or asyncio.create_task(restarted())

            done = await memory.publish_many(messages(range(6_000), ids=False), progress=begin_restart)
            assert restart is not None
            await restart
            assert done.count == 6_000
            assert await contents(connection) == [str(number) for number in range(6_000)]
            await connection.close()
    finally:
        await server.stop()


async def test_without_the_stream_the_error_says_what_to_do(nats_url: str) -> None:
    async with MemoryClient.connect(nats_url, tenant="acme", timeouts=IMPATIENT) as memory:
        with pytest.raises(PublishFailed, match="mnemon provision") as failed:
            await memory.publish("u1", "user", "a", id="x")
        assert (failed.value.event_id, failed.value.retryable) == ("x", True)
        with pytest.raises(PublishFailed, match="mnemon provision"):
            await memory.publish_many(messages(range(1500)))


async def test_publish_gives_up_on_a_server_that_does_not_return(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, None)
    await server.start()
    async with MemoryClient.connect(server.url, tenant="acme", timeouts=IMPATIENT) as memory:
        await server.stop()
        async with asyncio.timeout(60):
            with pytest.raises(PublishFailed, match="did not answer") as failed:
                await memory.publish("u1", "user", "a")
        assert failed.value.retryable


async def test_a_closed_connection_is_not_tried_again(connection: Client, nats_url: str) -> None:
    own = await connect(nats_url, name="own")
    memory = MemoryClient(own, tenant="acme")
    await own.close()
    with pytest.raises(PublishFailed, match="closed") as failed:
        await memory.publish("u1", "user", "a")
    assert not failed.value.retryable


async def test_publish_makes_no_further_attempt_once_its_client_closes(nats_url: str) -> None:
    async with await connect(nats_url, name="test") as own:
        answering = Answering([refusal(503, 10077)])
        await own.subscribe("chat.>", cb=answering.answer)
        async with asyncio.timeout(30):
            async with MemoryClient.connect(nats_url, tenant="acme", timeouts=Timeouts(retry=600)) as memory:
                publishing = asyncio.create_task(memory.publish("u1", "user", "a", id="x"))
                while not answering.asked:
                    await own.flush()
            with pytest.raises(PublishFailed, match="the client was closed") as failed:
                await publishing
        assert (failed.value.event_id, failed.value.retryable) == ("x", False)
