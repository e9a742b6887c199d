"""Figures of the overview, computed from samples of the status, and their small plots. No I/O."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from mnemon.admin.live_status import StatusSample
from mnemon.operations.health.lag import MANY_MESSAGES, Lag, compute_lags, count_ended_deliveries
from mnemon_contracts.streams import LOG
from mnemon_infra.durables import CONSUMERS, DURABLES
from mnemon_infra.health.fault import count_unhandled_messages

DURABLES_BY_CONSUMER: Final[Mapping[str, tuple[str, ...]]] = {
    consumer: durables
    for consumer in CONSUMERS
    if (durables := tuple(each.name for each in DURABLES.values() if each.consumer == consumer))
}
"""Durables of each consumer that has any, in the order of the overview."""

_RECENT: Final = 10.0
"""Seconds within which a process that reads a durable has an open pull request at least once."""

WorkState = Literal["at rest", "at work", "behind", "paused", "absent"]


class Figures(NamedTuple):
    """State of a consumer, the deliveries that it ends per second, and the messages that wait for it."""

    state: WorkState
    rate: float
    waiting: int


class Series(NamedTuple):
    """A figure over time: pairs of seconds (monotonic clock) and values; the last pair is the present."""

    points: Sequence[tuple[float, float]]

    @property
    def now(self) -> float:
        return self.points[-1][1]


class Traffic(NamedTuple):
    """Published events, requests and waiting messages over time.

    Attributes:
        published: events per second.
        asked: requests per second.
        waiting: messages that wait for consumers.
        milliseconds: mean duration of a request between the last two samples; None if there was no request.
        refused: requests with errors between the last two samples.
    """

    published: Series
    asked: Series
    waiting: Series
    milliseconds: float | None
    refused: int


def compute_traffic(samples: Sequence[StatusSample]) -> Traffic:
    """Compute the rates of events and requests between consecutive samples, and the waiting messages.

    There must be at least two samples, as for all functions of this module that take samples.
    """
    between = list(pairwise(samples))
    answered = between[-1][1].requests.compute_increase(between[-1][0].requests)
    return Traffic(
        published=Series(
            [
                (b.consumers.at, _compute_rate(a, b, _get_last_position(a), _get_last_position(b)))
                for a, b in between
            ]
        ),
        asked=Series(
            [
                (
                    b.consumers.at,
                    b.requests.compute_increase(a.requests).requests / _compute_elapsed_seconds(a, b),
                )
                for a, b in between
            ]
        ),
        waiting=Series([(each.consumers.at, _sum_unhandled_messages(each)) for each in samples]),
        milliseconds=1000 * answered.seconds / answered.requests if answered.requests else None,
        refused=answered.errors,
    )


def compute_figures(samples: Sequence[StatusSample]) -> dict[str, Figures]:
    """Return state, rate and waiting messages of each consumer in `DURABLES_BY_CONSUMER`, by its name."""
    before, now = samples[-2:]
    lags, ended_in_a_second, read = (
        compute_lags(before.consumers, now.consumers),
        compute_rates(samples),
        find_read_durables(samples),
    )
    found = {}
    for name, durables in DURABLES_BY_CONSUMER.items():
        own = [lags[each] for each in durables if each in lags]
        rate = sum(ended_in_a_second.get(each, 0.0) for each in durables)
        state = _choose_state(own, rate, is_read=read.issuperset(durables))
        found[name] = Figures(state, rate, sum(lag.waiting for lag in own))
    return found


def find_read_durables(samples: Sequence[StatusSample]) -> set[str]:
    """Return the names of the durables that a process reads.

    The signs are a pull request or an unacknowledged delivery in a sample of the last `_RECENT` seconds, or a
    rate above 0.
    """
    since = samples[-1].consumers.at - _RECENT
    seen = [each.consumers.infos for each in samples if each.consumers.at >= since] + [
        samples[-1].consumers.infos
    ]
    return {
        name for infos in seen for name, info in infos.items() if info.num_waiting or info.num_ack_pending
    } | {name for name, rate in compute_rates(samples).items() if rate > 0}


def compute_rates(samples: Sequence[StatusSample]) -> dict[str, float]:
    """Return, by durable, the deliveries per second that ended between the last two samples."""
    before, now = samples[-2:]
    return {
        name: _compute_rate(
            before, now, count_ended_deliveries(before.consumers.infos[name]), count_ended_deliveries(info)
        )
        for name, info in now.consumers.infos.items()
        if name in before.consumers.infos
    }


def _choose_state(own: Sequence[Lag], rate: float, *, is_read: bool) -> WorkState:
    if any(lag.paused_until for lag in own):
        return "paused"
    if not is_read:
        return "absent"
    if any(lag.waiting >= MANY_MESSAGES and (lag.grows_per_second or 0) > 0 for lag in own):
        return "behind"
    return "at work" if rate > 0 else "at rest"


def _get_last_position(sample: StatusSample) -> int:
    return sample.streams[LOG].last_seq if LOG in sample.streams else 0


def _sum_unhandled_messages(sample: StatusSample) -> int:
    return sum(map(count_unhandled_messages, sample.consumers.infos.values()))


def _compute_rate(before: StatusSample, now: StatusSample, first: int, second: int) -> float:
    return max(0, second - first) / _compute_elapsed_seconds(before, now)


def _compute_elapsed_seconds(before: StatusSample, now: StatusSample) -> float:
    return max(now.consumers.at - before.consumers.at, 0.001)


WIDTH, HEIGHT = 100.0, 30.0


class Sparkline(NamedTuple):
    """The paths of a line and of the area below it, and the highest value."""

    line: str
    area: str
    top: float


def draw_sparkline(points: Sequence[tuple[float, float]], span: float) -> Sparkline:
    """Plot the points of the last `span` seconds; the last point is at the right edge.

    A point is a pair of seconds and value; the points are in order of time. With fewer than two of them, the
    paths are empty.
    """
    end = points[-1][0] if points else 0.0
    shown = [(WIDTH * (1 - (end - at) / span), value) for at, value in points if end - at <= span]
    top = max((value for _, value in shown), default=0.0)
    places = [f"{x:.1f} {HEIGHT * (1 - value / top) if top else HEIGHT:.1f}" for x, value in shown]
    if len(places) < 2:
        return Sparkline("", "", top)
    line = "M" + "L".join(places)
    return Sparkline(line, f"{line}L{WIDTH:.1f} {HEIGHT:.1f}L{shown[0][0]:.1f} {HEIGHT:.1f}z", top)
