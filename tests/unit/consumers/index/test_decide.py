"""Selection of a batch's searchable texts, and of the users whose points are swept."""

import json

from mnemon_consumers.index.decide import NOTHING, plan_batch
from mnemon_infra.broker.outcomes import ACK
from mnemon_infra.broker.streams.restored_log import FILLER_SUBJECT
from mnemon_infra.delivery import Delivery


def said(seq: int, deliveries: int = 1) -> Delivery:
    body = json.dumps({"role": "user", "content": "something"}).encode()
    return Delivery("chat.acme.u1.-.message.v1", body, None, "LOG", seq, deliveries, 1.0)


def test_message_is_indexed_without_a_sweep() -> None:
    batch = plan_batch([said(1), said(2)])
    assert [each.payload["seq"] for each in batch.messages] == [1, 2]
    assert batch.sweeps == {}


def test_redelivery_sweeps_the_user() -> None:
    """The message may have been indexed and removed before; the sweep removes the point that returns."""
    batch = plan_batch([said(3, deliveries=2), said(2)])
    assert [each.payload["seq"] for each in batch.messages] == [3, 2]
    assert batch.sweeps == {("acme", "u1"): 3}


def test_redelivery_after_server_kill_sweeps_the_user() -> None:
    batch = plan_batch([said(3), said(4)], seen=3)
    assert [each.payload["seq"] for each in batch.messages] == [3, 4]
    assert batch.sweeps == {("acme", "u1"): 3}


def test_filler_has_no_searchable_text_and_no_dead_letter() -> None:
    batch = plan_batch([Delivery(FILLER_SUBJECT, b"", None, "LOG", 1, 2, 1.0), said(2)])
    assert batch.outcomes == [NOTHING, ACK]
    assert batch.sweeps == {}


def test_clear_sweeps_the_user() -> None:
    batch = plan_batch([said(1), Delivery("chat.acme.u1.-.cleared.v1", b"{}", None, "LOG", 2, 1, 1.0)])
    assert batch.sweeps == {("acme", "u1"): 2}


def test_summary_is_indexed_and_sweeps_the_user() -> None:
    """The summary may replace other summaries, whose points the sweep removes."""
    body = {
        "summary_id": "s2",
        "conversation": "c",
        "from_seq": 1,
        "to_seq": 9,
        "text": "all",
        "merged": ["s1"],
    }
    events = [
        Delivery(f"memory.acme.u1.summary.{name}.v1", json.dumps(body).encode(), name, "LOG", seq, 1, 1.0)
        for seq, name in ((7, "written"), (8, "merged"))
    ]
    batch = plan_batch(events)
    assert [(each.payload["summary_id"], each.meaning) for each in batch.summaries] == [("s2", "all")] * 2
    assert len({each.payload["event_id"] for each in batch.summaries}) == 2
    assert batch.sweeps == {("acme", "u1"): 8}
