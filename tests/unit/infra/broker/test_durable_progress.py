"""Progress of durables from the server's counts: deliveries that stall, and standstills of positions."""

from datetime import UTC, datetime
from typing import Any

from nats.js.api import ConsumerConfig, ConsumerInfo, SequenceInfo

from mnemon_infra.broker.durable_progress import STALL_SECONDS, STANDSTILL_SECONDS, DurableProgress


def figures(
    name: str = "persist", stream: str = "LOG", delivered: int = 0, floor: int = 0, **fields: Any
) -> ConsumerInfo:
    return ConsumerInfo(
        name=name,
        stream_name=stream,
        config=ConsumerConfig(),
        created=datetime.now(UTC),
        delivered=SequenceInfo(delivered, delivered),
        ack_floor=SequenceInfo(floor, floor),
        **fields,
    )


def test_messages_without_deliveries_are_a_stall_after_its_seconds() -> None:
    progress = DurableProgress()
    progress.observe([figures(num_pending=1, num_ack_pending=0)], 0.0)
    assert progress.measure_stall("persist", STALL_SECONDS - 1) == 0
    progress.observe([figures(num_pending=5, num_ack_pending=0)], STALL_SECONDS)
    assert progress.measure_stall("persist", STALL_SECONDS) == STALL_SECONDS
    progress.observe([figures(num_pending=5, num_ack_pending=0, delivered=1)], STALL_SECONDS)
    assert progress.measure_stall("persist", STALL_SECONDS) == 0


def test_messages_in_work_and_pauses_are_no_stall() -> None:
    progress = DurableProgress()
    for now in (0.0, 2 * STALL_SECONDS):
        progress.observe(
            [
                figures("extract", "WORK", num_pending=3, num_ack_pending=1),
                figures("persist", num_pending=3, num_ack_pending=0, paused=True),
                figures("index", num_pending=0, num_ack_pending=0),
            ],
            now,
        )
    assert [progress.measure_stall(name, 100.0) for name in ("extract", "persist", "index")] == [0, 0, 0]


def test_applied_position_that_does_not_move_is_a_standstill_of_log_consumers() -> None:
    progress = DurableProgress()
    for now in (0.0, STANDSTILL_SECONDS):
        progress.observe(
            [
                figures(num_pending=0, num_ack_pending=3, floor=7),
                figures("index", num_pending=0, num_ack_pending=3, floor=int(now)),
                figures("compact", "WORK", num_pending=0, num_ack_pending=3, floor=7),
            ],
            now,
        )
    measured = {
        name: progress.measure_standstill(name, STANDSTILL_SECONDS)
        for name in ("persist", "index", "compact")
    }
    assert measured == {"persist": STANDSTILL_SECONDS, "index": 0, "compact": 0}
    progress.observe([figures(num_pending=0, num_ack_pending=0, floor=10)], STANDSTILL_SECONDS)
    assert progress.measure_standstill("persist", STANDSTILL_SECONDS) == 0
