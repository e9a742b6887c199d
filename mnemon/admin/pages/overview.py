"""Overview: running processes, their throughput and their lag."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from mnemon.admin.charts import figures
from mnemon.admin.charts.event_flow import PartLabel, draw_pictures
from mnemon.admin.charts.figures import Figures, Traffic, draw_sparkline
from mnemon.admin.live_status import LEAST_SPAN, LiveStatus, StatusSample
from mnemon.admin.page import PageSection, Visit
from mnemon.admin.rendering import filters
from mnemon.operations.health.lag import Lag, compute_lags
from mnemon_contracts.streams import LOG, WORK
from mnemon_infra.durables import DURABLES

pages = PageSection("Overview", "/")


class ConsumerRow(NamedTuple):
    """A durable as the table shows it.

    Attributes:
        does: purpose of the durable.
        rate: deliveries that end per second.
        runs: whether a process reads the durable.
    """

    name: str
    does: str
    lag: Lag
    rate: float
    runs: bool


@pages.get("/")
async def show_overview(visit: Visit) -> Response:
    return visit.render("overview/page.html", **await _collect_values(visit))


@pages.get("/overview/live")
async def show_live_figures(visit: Visit) -> Response:
    """Render the fragment with rates, waiting messages and the state of each consumer."""
    return visit.render("overview/live.html", **await _collect_values(visit))


@pages.get("/overview/health")
async def show_health(visit: Visit) -> Response:
    """Render the fragment with the health report, which takes longer than the live figures."""
    watch: LiveStatus = visit.request.app.state.watch
    return visit.render("overview/health.html", health=await watch.get_health())


async def _collect_values(visit: Visit) -> dict[str, Any]:
    watch: LiveStatus = visit.request.app.state.watch
    samples = await watch.get_samples()
    flow, consumers = figures.compute_traffic(samples), figures.compute_figures(samples)
    wide, tall = draw_pictures(_label_parts(samples[-1], flow, consumers))
    span = max(LEAST_SPAN, samples[-1].consumers.at - samples[0].consumers.at)
    plots = {
        name: draw_sparkline(getattr(flow, name).points, span) for name in ("published", "asked", "waiting")
    }
    return {
        "wide": wide,
        "tall": tall,
        "flow": flow,
        "plots": plots,
        "span": span,
        "readers": _list_readers(samples),
        "dead_letters": samples[-1].dead_letters,
        "retrieving": samples[-1].requests.processes,
    }


def _list_readers(samples: Sequence[StatusSample]) -> list[ConsumerRow]:
    before, now = samples[-2:]
    lags, rates, read = (
        compute_lags(before.consumers, now.consumers),
        figures.compute_rates(samples),
        figures.find_read_durables(samples),
    )
    return [
        ConsumerRow(name, durable.description, lags[name], rates.get(name, 0.0), name in read)
        for name, durable in DURABLES.items()
        if name in lags
    ]


def _label_parts(now: StatusSample, flow: Traffic, consumers: Mapping[str, Figures]) -> dict[str, PartLabel]:
    published, asked = flow.published.now, flow.asked.now
    answers = (
        (_format_rate(asked), f"{flow.milliseconds:.1f} ms each") if flow.milliseconds else ("no requests",)
    )
    absent = not now.requests.processes
    return {
        "bots": PartLabel(
            "bot", (f"{_format_rate(published)} events",) if published else ("no events",), busy=published > 0
        ),
        LOG: PartLabel("stream", _describe_stream(now, LOG), busy=published > 0),
        WORK: PartLabel("stream", _describe_stream(now, WORK)),
        **{name: _label_process(each) for name, each in consumers.items()},
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


def _label_process(consumer: Figures) -> PartLabel:
    said: list[str] = [_format_rate(consumer.rate)] if consumer.rate else [consumer.state]
    if consumer.waiting:
        said.append(f"{filters.format_number(consumer.waiting)} waiting")
    return PartLabel("process", (", ".join(said),), consumer.state, busy=consumer.rate > 0)


def _describe_stream(now: StatusSample, stream: str) -> tuple[str, ...]:
    state = now.streams.get(stream)
    if state is None:
        return ("missing",)
    what = "events" if stream == LOG else "triggers"
    return f"{filters.format_number(state.messages)} {what}", filters.format_size(state.bytes)


def _format_rate(rate: float) -> str:
    return f"{filters.format_number(round(rate, 1))}/s"
