"""Plan of one batch: the row for the copies of an event, the users that change, and the users to sweep."""

import json
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject, build_memory_subject
from mnemon_infra.database.projections.rows import Row, Rows
from mnemon_infra.delivery import Delivery


def event(seq: int, name: str, event_id: str, user: str = "u1", **body: Any) -> Delivery:
    subject = (
        build_memory_subject("acme", user, name)
        if "." in name
        else build_chat_subject("acme", user, None, name)
    )
    return Delivery(subject, json.dumps(body).encode(), event_id, "LOG", seq, 1, 1.8e9 + seq)


def rows_of(deliveries: Sequence[Delivery]) -> Rows:
    return plan_batch(deliveries).rows


FACT: dict[str, Any] = {"fact_id": "f", "fact": {"text": "Likes tea"}, "decision": {"proposal_id": "p"}}
COPIES = [
    pytest.param("message", {"role": "user", "content": "hi"}, id="a message"),
    pytest.param("fact.saved", FACT, id="a memory event"),
    pytest.param("started", {"discard_previous": True}, id="another event"),
    pytest.param("user.erased", {"up_to_seq": 9, "conversation": "c"}, id="an erasure of a conversation"),
]


@pytest.mark.parametrize(("name", "body"), COPIES)
def test_of_copies_of_an_event_the_first_in_the_log_counts(name: str, body: dict[str, Any]) -> None:
    copies = [event(seq, name, "same", **body) for seq in (4, 5, 6)]
    for order in permutations(copies):
        rows = rows_of(order)
        kept: list[Row] = [*rows.messages.values(), *rows.memories.values(), *rows.events.values()]
        assert [row.seq for row in kept] == [4]


def test_of_copies_of_an_erasure_of_a_user_each_counts() -> None:
    copies = [event(seq, "user.erased", "same", up_to_seq=2**53 - 1) for seq in (4, 5, 6)]
    for order in permutations(copies):
        rows = rows_of([*order, order[0]])
        assert sorted(row.seq for row in rows.events.values()) == [4, 5, 6]


def test_the_same_id_is_another_event_of_another_user() -> None:
    rows = rows_of([event(1, "message", "m", user, role="user", content="hi") for user in ("u1", "u2")])
    assert len(rows.messages) == 2


def test_changed_users_have_their_highest_position() -> None:
    said: dict[str, Any] = {"role": "user", "content": "hi"}
    deliveries = [
        event(7, "message", "m7", **said),
        event(3, "started", "s3"),
        event(5, "fact.saved", "f5", **FACT),
        event(2, "message", "m2", "u2", **said),
        event(9, "cleared", "c9", "u2"),
    ]
    for order in permutations(deliveries):
        assert rows_of(order).map_owners() == {("acme", "u1"): 7, ("acme", "u2"): 9}


WATERMARKS = [
    ("cleared", {}, True),
    ("started", {"discard_previous": True}, True),
    ("started", {"discard_previous": False}, False),
    ("message", {"role": "user", "content": "hi"}, False),
    ("user.erased", {"up_to_seq": 9}, True),
    ("user.erased", {"up_to_seq": 9, "conversation": "c"}, True),
    ("profile.set", {"fields": {"city": "Kazan"}}, False),
    ("fact.saved", FACT, True),
    ("fact.forgotten", {"fact_id": "f"}, True),
    ("task.added", {"task_id": "t", "text": "Buy tea"}, False),
    ("task.removed", {"task_id": "t"}, True),
]


@pytest.mark.parametrize(("name", "body", "expected"), WATERMARKS)
def test_users_to_sweep_are_named(name: str, body: dict[str, Any], expected: bool) -> None:
    rows = rows_of([event(9, name, "e", **body)])
    assert rows.find_watermarked_owners() == ({("acme", "u1")} if expected else set())
