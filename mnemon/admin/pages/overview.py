"""Overview: running processes, their throughput and their lag."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from mnemon.admin.charts import figures
from mnemon.admin.charts.event_flow import PartLabel, pictures
from mnemon.admin.charts.figures import Figures, Traffic
from mnemon.admin.charts.sparklines import spark
from mnemon.admin.live_status import LEAST_SPAN, LiveStatus, StatusSample
from mnemon.admin.page import PageSection, Visit
from mnemon.admin.rendering import filters
from mnemon.operations.health.lag import Lag, moving
from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.durables import DURABLES

pages = PageSection("Overview", "/")


class ConsumerRow(NamedTuple):
    """A durable as the table shows it."""

    name: str
    does: str
    lag: Lag
    rate: float
    runs: bool


@pages.get("/")
async def overview(visit: Visit) -> Response:
    """Show the first page."""
    return visit.page("overview.html", **await _seen(visit))


@pages.get("/overview/live")
async def live(visit: Visit) -> Response:
    """Render the fragment with live figures."""
    return visit.page("overview_live.html", **await _seen(visit))


@pages.get("/overview/health")
async def health(visit: Visit) -> Response:
    """Render the fragment with the health report, which takes longer."""
    watch: LiveStatus = visit.request.app.state.watch
    return visit.page("overview_health.html", health=await watch.health())


async def _seen(visit: Visit) -> dict[str, Any]:
    watch: LiveStatus = visit.request.app.state.watch
    samples = await watch.samples()
    flow, fares = figures.traffic(samples), figures.consumers(samples)
    wide, tall = pictures(_shown(samples[-1], flow, fares))
    span = max(LEAST_SPAN, samples[-1].look.at - samples[0].look.at)
    plots = {name: spark(getattr(flow, name).points, span) for name in ("published", "asked", "waiting")}
    return {
        "wide": wide,
        "tall": tall,
        "flow": flow,
        "plots": plots,
        "span": span,
        "readers": _readers(samples),
        "dead_letters": samples[-1].dead_letters,
        "retrieving": samples[-1].served.processes,
    }


def _readers(samples: Sequence[StatusSample]) -> list[ConsumerRow]:
    before, now = samples[-2:]
    lags, rates, read = moving(before.look, now.look), figures.rates(samples), figures.are_read(samples)
    return [
        ConsumerRow(name, durable.description, lags[name], rates.get(name, 0.0), name in read)
        for name, durable in DURABLES.items()
        if name in lags
    ]


def _shown(now: StatusSample, flow: Traffic, fares: Mapping[str, Figures]) -> dict[str, PartLabel]:
    published, asked = flow.published.now, flow.asked.now
    answers = (
        (_per_second(asked), f"{flow.milliseconds:.1f} ms each") if flow.milliseconds else ("no requests",)
    )
    absent = not now.served.processes
    return {
        "bots": PartLabel(
            "bot", (f"{_per_second(published)} events",) if published else ("no events",), busy=published > 0
        ),
        LOG: PartLabel("stream", _kept(now, LOG), busy=published > 0),
        WORK: PartLabel("stream", _kept(now, WORK)),
        **{name: _process(each) for name, each in fares.items()},
        "PostgreSQL": PartLabel("store", ("rows",)),
        "Qdrant": PartLabel("store", ("vectors",)),
        "models": PartLabel("store", ("language models",)),
        "retrieve": PartLabel(
            "process",
            ("not running",) if absent else answers,
            "absent" if absent else "at work" if asked else "at rest",
            busy=asked > 0,
        ),
    }


def _process(fares: Figures) -> PartLabel:
    said: list[str] = [_per_second(fares.rate)] if fares.rate else [fares.state]
    if fares.waiting:
        said.append(f"{filters.number(fares.waiting)} pending")
    return PartLabel("process", (", ".join(said),), fares.state, busy=fares.rate > 0)


def _kept(now: StatusSample, stream: str) -> tuple[str, ...]:
    state = now.streams.get(stream)
    if state is None:
        return ("missing",)
    what = "events" if stream == LOG else "triggers"
    return f"{filters.number(state.messages)} {what}", filters.size(state.bytes)


def _per_second(rate: float) -> str:
    return f"{filters.number(round(rate, 1))}/s"
