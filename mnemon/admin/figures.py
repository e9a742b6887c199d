"""From what was seen to what is shown. Pure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from contracts.streams import LOG
from mnemon.admin.watching import Sample
from mnemon.health.lags import MANY, Lag, ended, moving

PROCESSES: Final[Mapping[str, tuple[str, ...]]] = {
    "persist": ("persist", "persist-sweep"),
    "index": ("index", "index-sweep"),
    "dedupe": ("dedupe", "dedupe-limits"),
    "compact": ("compact-said", "compact"),
    "extract": ("extract-said", "extract", "extract-batches"),
    "maintain": ("maintain",),
}
"""What each consumer reads by."""

State = Literal["at rest", "at work", "behind", "stopped", "absent"]


class Figures(NamedTuple):
    """How a consumer fares: `rate` is what it ends in a second."""

    state: State
    rate: float
    waiting: int


class Series(NamedTuple):
    """A figure over time: seconds of the clock, and values. The last is of now."""

    points: Sequence[tuple[float, float]]

    @property
    def now(self) -> float:
        return self.points[-1][1]


class Traffic(NamedTuple):
    """What comes in, and what is answered, over time; `milliseconds` is the mean of an answer just now."""

    published: Series
    asked: Series
    waiting: Series
    milliseconds: float | None
    refused: int


def traffic(samples: Sequence[Sample]) -> Traffic:
    """What the looks say together."""
    between = list(pairwise(samples))
    answered = between[-1][1].served.since(between[-1][0].served)
    return Traffic(
        published=Series([(b.look.at, _rate(a, b, _end(a), _end(b))) for a, b in between]),
        asked=Series([(b.look.at, b.served.since(a.served).requests / _seconds(a, b)) for a, b in between]),
        waiting=Series([(each.look.at, _waiting(each)) for each in samples]),
        milliseconds=1000 * answered.seconds / answered.requests if answered.requests else None,
        refused=answered.errors,
    )


def consumers(samples: Sequence[Sample]) -> dict[str, Figures]:
    """How each consumer fares just now."""
    before, now = samples[-2:]
    lags = moving(before.look, now.look)
    return {name: _figures(before, now, lags, durables) for name, durables in PROCESSES.items()}


def rates(samples: Sequence[Sample]) -> dict[str, float]:
    """What is ended in a second, by durable consumer."""
    before, now = samples[-2:]
    return {
        name: _rate(before, now, ended(before.look.infos[name]), ended(info))
        for name, info in now.look.infos.items()
        if name in before.look.infos
    }


def _figures(before: Sample, now: Sample, lags: Mapping[str, Lag], durables: Sequence[str]) -> Figures:
    own = [lags[name] for name in durables if name in lags]
    known = rates([before, now])
    rate, waiting = sum(known.get(name, 0.0) for name in durables), sum(lag.waiting for lag in own)
    return Figures(_state(own, rate), rate, waiting)


def _state(own: Sequence[Lag], rate: float) -> State:
    if any(lag.paused_until for lag in own):
        return "stopped"
    if not own or any(not lag.readers and not lag.in_work for lag in own):
        return "absent"
    if any(lag.waiting >= MANY and (lag.grows_per_second or 0) > 0 for lag in own):
        return "behind"
    return "at work" if rate > 0 else "at rest"


def _end(sample: Sample) -> int:
    return sample.streams[LOG].last_seq if LOG in sample.streams else 0


def _waiting(sample: Sample) -> int:
    infos = sample.look.infos.values()
    return sum((info.num_pending or 0) + (info.num_ack_pending or 0) for info in infos)


def _rate(before: Sample, now: Sample, first: int, second: int) -> float:
    return max(0, second - first) / _seconds(before, now)


def _seconds(before: Sample, now: Sample) -> float:
    return max(now.look.at - before.look.at, 0.001)
