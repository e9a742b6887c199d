"""Figures of the admin page, computed from samples: rates, states, plots, texts and the flow chart."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from nats.js.api import ConsumerConfig, ConsumerInfo, SequenceInfo

from mnemon.admin.charts.event_flow import PartLabel, draw_pictures
from mnemon.admin.charts.figures import (
    DURABLES_BY_CONSUMER,
    WorkState,
    compute_figures,
    compute_traffic,
    draw_sparkline,
)
from mnemon.admin.live_status import StatusSample
from mnemon.admin.rendering import filters
from mnemon.operations.health.lag import DurableSample, StreamState
from mnemon.operations.health.services import ServiceCounts
from mnemon_contracts.streams import LOG


def reader(
    name: str = "persist", delivered: int = 0, pending: int = 0, readers: int = 1, paused: bool = False
) -> ConsumerInfo:
    return ConsumerInfo(
        name=name,
        stream_name=LOG,
        config=ConsumerConfig(pause_until="2026-11-22T05:00:00Z" if paused else None),
        created=datetime(2026, 1, 1, tzinfo=UTC),
        delivered=SequenceInfo(consumer_seq=delivered, stream_seq=delivered),
        num_pending=pending,
        num_ack_pending=0,
        num_waiting=readers,
        paused=paused or None,
    )


NOTHING_SERVED = ServiceCounts(1)


def sample(
    at: float, *readers: ConsumerInfo, end: int = 0, served: ServiceCounts = NOTHING_SERVED
) -> StatusSample:
    streams = {LOG: StreamState(messages=end, bytes=0, last_seq=end)}
    return StatusSample(streams, DurableSample(at, {info.name: info for info in readers}), served)


@pytest.mark.parametrize(
    ("before", "now", "state", "rate"),
    [
        (reader(), reader(), "at rest", 0),
        (reader(), reader(delivered=40), "at work", 20),
        (reader(pending=5, readers=0), reader(pending=5, readers=0), "absent", 0),
        (reader(), reader(readers=0), "at rest", 0),
        (reader(readers=0), reader(readers=0, paused=True), "paused", 0),
        (reader(pending=2000), reader(delivered=10, pending=3000), "behind", 5),
    ],
)
def test_consumer_state_follows_from_its_figures(
    before: ConsumerInfo, now: ConsumerInfo, state: WorkState, rate: float
) -> None:
    sweep = reader("persist-sweep")
    fares = compute_figures([sample(10, before, sweep), sample(12, now, sweep)])["persist"]
    assert (fares.state, fares.rate) == (state, rate)


def test_consumer_without_a_sample_is_absent() -> None:
    assert {each.state for each in compute_figures([sample(1), sample(2)]).values()} == {"absent"}


def test_answers_count_from_zero_when_retrieve_restarts() -> None:
    first = sample(10, end=100, served=ServiceCounts(1, requests=900, seconds=9))
    second = sample(12, end=150, served=ServiceCounts(1, requests=50, errors=2, seconds=0.1))
    seen = compute_traffic([first, second])
    assert (seen.published.now, seen.asked.now, seen.milliseconds, seen.refused) == (25, 25, 2, 2)


def test_plot_shows_the_latest_value_at_the_right() -> None:
    plot = draw_sparkline([(0, 99), (90, 0), (95, 10), (100, 5)], span=10)
    assert (plot.line, plot.top) == ("M0.0 30.0L50.0 0.0L100.0 15.0", 10)
    assert draw_sparkline([(1, 1)], span=10).line == ""
    assert draw_sparkline([(1, 0), (2, 0)], span=10).line.endswith("100.0 30.0")


def test_every_part_stands_within_both_pictures() -> None:
    names = ("bots", "LOG", "WORK", *DURABLES_BY_CONSUMER, "PostgreSQL", "Qdrant", "models", "retrieve")
    for picture in draw_pictures({name: PartLabel("process") for name in names}):
        assert sorted(part.name for part in picture.parts) == sorted(names)
        for part in picture.parts:
            assert 0 < part.box.x < part.box.x + part.box.width < picture.width
            assert 0 < part.box.y < part.box.y + part.box.height < picture.height


def test_figures_are_formatted_in_words() -> None:
    assert [filters.format_number(each) for each in (None, 0, 0.25, 3.0, 12_345)] == [
        "–",
        "0",
        "0.2",
        "3",
        "12,345",
    ]
    assert [filters.format_age(each) for each in (None, 12, 100, 7200, 200_000)] == [
        "–",
        "12 s",
        "2 min",
        "2 h",
        "2 d",
    ]
    assert [filters.format_size(each) for each in (None, 12, 4_500, 231_000)] == [
        "–",
        "12 B",
        "4.5 KB",
        "231 KB",
    ]
    moscow = datetime(2026, 11, 22, 7, 53, 1, tzinfo=timezone(timedelta(hours=3)))
    assert ">22 Nov 2026, 04:53<" in filters.format_time(moscow)
    assert filters.format_time(datetime(2026, 1, 2, tzinfo=UTC)).startswith('<time datetime="2026-01-02T')
