"""Groups of derived events come into the log together, each of them whole."""

import pytest
from nats.aio.client import Client

from mnemon_contracts.events.memory import FactProposedV1
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.streams import log_writer
from mnemon_infra.broker.streams.log_writer import LogEvent, append, append_groups


def group(name: str, size: int) -> list[LogEvent]:
    subject = f"memory.acme.{name}.fact.proposed.v1"
    return [
        LogEvent(subject, FactProposedV1.strictly(text=f"Likes tea {number}").body(), f"{name}:{number}")
        for number in range(size)
    ]


async def batches(connection: Client) -> list[list[str]]:
    """The event ids of the log, by the atomic batch that they came in."""
    jetstream = connection.jetstream()
    found: dict[str, list[str]] = {}
    for seq in range(1, (await jetstream.stream_info(LOG)).state.last_seq + 1):
        headers = (await jetstream.get_msg(LOG, seq)).headers or {}
        found.setdefault(headers.get("Nats-Batch-Id", ""), []).append(headers["Nats-Msg-Id"])
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
    await append(connection, group("u1", 2))
    await append_groups(connection, [group("u2", 2), group("u1", 2), group("u3", 3)])
    assert await batches(connection) == [
        ["u1:0", "u1:1"],
        ["u2:0", "u2:1"],
        ["u3:0", "u3:1", "u3:2"],
    ]


async def test_empty_groups_append_nothing(connection: Client) -> None:
    await append_groups(connection, [[], []])
    assert await batches(connection) == []
