"""Groups of derived events are appended in shared batches, and each group is stored as a whole."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import nats.errors
import pytest
from nats.aio.client import Client

from mnemon_contracts.events.memory import FactProposedV1
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.streams import log_writer
from mnemon_infra.broker.streams.log_writer import AppendedEvent, LogEvent, append_events, append_groups


def group(name: str, size: int) -> list[LogEvent]:
    subject = f"memory.acme.{name}.fact.proposed.v1"
    return [
        LogEvent(
            subject,
            FactProposedV1.create_strict(text=f"Likes tea {number}").encode_body(),
            f"{name}:{number}",
        )
        for number in range(size)
    ]


async def batches(connection: Client) -> list[list[str]]:
    """Return the event ids of the log, one list for each atomic batch; a single event counts as a batch."""
    jetstream = connection.jetstream()
    found: dict[str, list[str]] = {}
    for seq in range(1, (await jetstream.stream_info(LOG)).state.last_seq + 1):
        headers = (await jetstream.get_msg(LOG, seq)).headers or {}
        found.setdefault(headers.get("Nats-Batch-Id", str(seq)), []).append(headers["Nats-Msg-Id"])
    return list(found.values())


async def test_small_groups_share_a_batch_as_long_as_it_has_room(
    connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "BATCH", 5)
    await append_groups(connection, [group("u1", 2), group("u2", 2), group("u3", 1), group("u4", 3), []])
    assert await batches(connection) == [
        ["u1:0", "u1:1", "u2:0", "u2:1", "u3:0"],
        ["u4:0", "u4:1", "u4:2"],
    ]


async def test_duplicate_group_harms_no_other_group(connection: Client) -> None:
    await append_events(connection, group("u1", 2))
    await append_groups(connection, [group("u2", 2), group("u1", 2), group("u3", 3)])
    assert await batches(connection) == [
        ["u1:0", "u1:1"],
        ["u2:0", "u2:1", "u3:0", "u3:1", "u3:2"],
    ]


async def test_group_is_completed_after_an_erasure_removed_a_part(connection: Client) -> None:
    await append_events(connection, group("u1", 2))
    await connection.jetstream().delete_msg(LOG, 1)
    await append_groups(connection, [group("u1", 3), group("u2", 1)])
    jetstream = connection.jetstream()
    stored = [((await jetstream.get_msg(LOG, seq)).headers or {})["Nats-Msg-Id"] for seq in range(2, 5)]
    assert (stored[0], sorted(stored[1:])) == ("u1:1", ["u1:2", "u2:0"])
    assert (await jetstream.stream_info(LOG)).state.last_seq == 4


async def test_known_ids_are_found_among_many_subjects(connection: Client) -> None:
    users = [f"u{number}" for number in range(log_writer.MOST_SUBJECTS + 2)]
    await append_events(connection, group("u0", 1))
    await append_groups(connection, [group(user, 2) for user in users])
    assert await batches(connection) == [
        ["u0:0"],
        ["u0:1", *(f"{user}:{number}" for user in users[1:] for number in range(2))],
    ]


async def test_empty_groups_append_nothing(connection: Client) -> None:
    await append_groups(connection, [[], []])
    assert await batches(connection) == []


def build_answer(window: str, facts: int, *others: LogEvent) -> list[LogEvent]:
    """Return the group of an answered window: proposals, the answer, `others` and the model call."""
    end = f"{window}:answered"
    proposed = [replace(each, omitted_if_known=end) for each in group("u1", facts)]
    proposed = [replace(each, id=f"{window}:{place}") for place, each in enumerate(proposed)]
    subject = "memory.acme.u1.window.answered.v1"
    return [*proposed, LogEvent(subject, b"{}", end), *others, build_call(f"{window}:paid")]


def build_call(event_id: str) -> LogEvent:
    return LogEvent("memory.acme.u1.model.called.v1", b"{}", event_id)


COMPARED = LogEvent("memory.acme.u1.fact.compared.v1", b"{}", "compared")
"""Comparison of a pair of facts that the answers of two windows both contain."""


async def test_group_whose_comparison_is_known_is_stored_as_a_whole(connection: Client) -> None:
    await append_groups(connection, [build_answer("w1", 2, COMPARED)])
    await append_groups(connection, [build_answer("w2", 2, COMPARED)])
    assert await batches(connection) == [
        ["w1:0", "w1:1", "w1:answered", "compared", "w1:paid"],
        ["w2:0", "w2:1", "w2:answered", "w2:paid"],
    ]


async def test_lost_connection_leaves_no_part_of_a_group_whose_comparison_is_known(
    connection: Client, nats_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Close the connection after the first write of a single event."""
    await append_groups(connection, [build_answer("w1", 2, COMPARED)])
    append_event, one_by_one = log_writer._append_event, asyncio.Lock()

    async def append_and_close(writer: Client, event: LogEvent) -> AppendedEvent:
        async with one_by_one:
            appended = await append_event(writer, event)
            if not appended.known:
                await writer.close()
            return appended

    monkeypatch.setattr(log_writer, "_append_event", append_and_close)
    writer = await connect(nats_url, name="test")
    with suppress(nats.errors.Error):
        await append_groups(writer, [build_answer("w2", 2, COMPARED)])
    await writer.close()
    stored = [each for batch in await batches(connection) for each in batch if each.startswith("w2")]
    assert stored in ([], ["w2:0", "w2:1", "w2:answered", "w2:paid"])


async def test_two_groups_of_one_batch_share_a_comparison(connection: Client) -> None:
    await append_groups(connection, [build_answer("w1", 1, COMPARED), build_answer("w2", 1, COMPARED)])
    assert await batches(connection) == [
        ["w1:0", "w1:answered", "compared", "w1:paid", "w2:0", "w2:answered", "w2:paid"]
    ]


async def test_two_groups_share_a_comparison_beside_an_event_that_the_log_has(connection: Client) -> None:
    await append_events(connection, [build_call("w1:paid")])
    await append_groups(connection, [build_answer("w1", 1, COMPARED), build_answer("w2", 1, COMPARED)])
    assert await batches(connection) == [
        ["w1:paid"],
        ["w1:0", "w1:answered", "compared", "w2:0", "w2:answered", "w2:paid"],
    ]


async def test_second_answer_of_a_window_adds_no_facts_to_the_first(connection: Client) -> None:
    await append_groups(connection, [build_answer("w1", 1)])
    second = [*build_answer("w1", 3), build_call("w1:paid again"), COMPARED]
    await append_groups(connection, [second])
    assert await batches(connection) == [
        ["w1:0", "w1:answered", "w1:paid"],
        ["w1:paid again", "compared"],
    ]
    await append_groups(connection, [second])
    assert len(await batches(connection)) == 2
