"""Sheet of the sparklines of a soak test, as SVG, which needs no library for plots."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as Xml

from mnemon_bench.soak.trend import WARM_UP, Trend, find_trends

_COLUMNS: Final = 3
_CELL: Final = (240, 100)
"""Width and height of a cell, in units of the view box."""

_LINE: Final = (216, 52)
"""Width and height of a sparkline, in units of the view box."""

_MARGIN: Final = 12
_HEADER: Final = 28
_OK, _GROWING, _PALE, _TEXT = "#1f6feb", "#cf222e", "#8c959f", "#24292f"

SHOWN: Final = (
    *("memory_mb.foreground", "memory_mb.background", "memory_mb.nats-server", "memory_mb.postgres"),
    *("rows.messages", "rows.memory_events", "rows.windows", "rows.batches", "rows.model_calls"),
    *("messages.LOG", "messages.WORK", "messages.DEAD", "messages.KV_settings"),
    *("files.foreground", "files.background", "files.nats-server", "files.postgres"),
    *("connections.nats-server", "connections.database"),
    *("disk_mb.nats", "disk_mb.postgres", "disk_mb.vectors", "disk_files.nats", "disk_files.vectors"),
)
"""Series that the sheet shows, in this order."""


def write_sheet(path: Path, samples: Sequence[Mapping[str, float]]) -> None:
    """Write an SVG file with a sparkline for each series of `SHOWN` in the samples; growing series are red.

    The part of each line that belongs to the warm-up is pale. The lower edge of each sparkline is zero.

    Raises:
        ValueError: there are too few samples for a trend.
    """
    trends = {trend.name: trend for trend in find_trends(samples)}
    shown = [name for name in SHOWN if name in trends]
    width, height = _COLUMNS * _CELL[0], _HEADER + -(-len(shown) // _COLUMNS) * _CELL[1]
    sheet = Xml.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width} {height}",
            "font-family": "sans-serif",
            "font-size": "11",
        },
    )
    Xml.SubElement(sheet, "rect", {"width": str(width), "height": str(height), "fill": "#ffffff"})
    minutes = samples[-1]["seconds"] / 60
    _add_text(sheet, _MARGIN, 18, f"{minutes:,.0f} minutes; pale: warm-up; red: grows beyond its bound")
    for place, name in enumerate(shown):
        row, column = divmod(place, _COLUMNS)
        cell = Xml.SubElement(
            sheet,
            "g",
            {"transform": f"translate({column * _CELL[0] + _MARGIN} {_HEADER + row * _CELL[1]})"},
        )
        _draw_series(cell, trends[name], samples)
    path.write_text(Xml.tostring(sheet, encoding="unicode") + "\n")


def _draw_series(cell: Xml.Element, trend: Trend, samples: Sequence[Mapping[str, float]]) -> None:
    end = samples[-1]["seconds"]
    values = [sample.get(trend.name, 0.0) for sample in samples]
    most = max(*values, 1.0)
    points = [
        (sample["seconds"] / end * _LINE[0], 24 + _LINE[1] * (1 - value / most))
        for sample, value in zip(samples, values, strict=True)
    ]
    warm = sum(sample["seconds"] < end * WARM_UP for sample in samples)
    _add_text(cell, 0, 14, trend.name, color=_GROWING if trend.is_growing else _TEXT)
    _add_text(cell, _LINE[0], 14, f"{trend.level:,.4g}, {trend.growth:+,.2g}", anchor="end")
    Xml.SubElement(cell, "path", {"d": f"M0 {24 + _LINE[1]}H{_LINE[0]}", "stroke": "#d0d7de"})
    _add_line(cell, points[: warm + 1], _PALE)
    _add_line(cell, points[warm:], _GROWING if trend.is_growing else _OK)


def _add_line(cell: Xml.Element, points: Sequence[tuple[float, float]], color: str) -> None:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    Xml.SubElement(cell, "polyline", {"points": path, "fill": "none", "stroke": color, "stroke-width": "1.5"})


def _add_text(
    parent: Xml.Element, x: float, y: float, words: str, *, color: str = _TEXT, anchor: str = "start"
) -> None:
    place = {"x": str(x), "y": str(y), "fill": color, "text-anchor": anchor}
    Xml.SubElement(parent, "text", place).text = words
