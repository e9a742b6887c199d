"""Small plots, as SVG paths in a box of 100 by 30 units."""

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 100.0, 30.0


class Sparkline(NamedTuple):
    """The paths of a line and of the area below it, and the highest value."""

    line: str
    area: str
    top: float


def draw_sparkline(points: Sequence[tuple[float, float]], span: float) -> Sparkline:
    """Plot the points of the last `span` seconds; the last point is at the right edge.

    Args:
        points: pairs of seconds and values, in order of time.
        span: seconds that the plot covers.
    """
    end = points[-1][0] if points else 0.0
    shown = [(WIDTH * (1 - (end - at) / span), value) for at, value in points if end - at <= span]
    top = max((value for _, value in shown), default=0.0)
    places = [f"{x:.1f} {HEIGHT * (1 - value / top) if top else HEIGHT:.1f}" for x, value in shown]
    if len(places) < 2:
        return Sparkline("", "", top)
    line = "M" + "L".join(places)
    return Sparkline(line, f"{line}L{WIDTH:.1f} {HEIGHT:.1f}L{shown[0][0]:.1f} {HEIGHT:.1f}z", top)
