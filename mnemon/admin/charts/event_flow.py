"""Diagram of the path of an event through the system, for wide and for narrow screens. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

PartKind = Literal["bot", "stream", "process", "store"]


class Box(NamedTuple):
    """Position and size of a part, in units of the view box of the diagram."""

    x: int
    y: int
    width: int
    height: int

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


class PartLabel(NamedTuple):
    """Kind and state of a part, whether the part is busy, and the lines of text below its name."""

    kind: PartKind
    lines: Sequence[str] = ()
    state: str = ""
    busy: bool = False


class FlowPart(NamedTuple):
    """A part of the diagram with its position and label."""

    name: str
    box: Box
    label: PartLabel


class FlowLine(NamedTuple):
    """A line between two parts, as an SVG path."""

    path: str
    busy: bool


class Picture(NamedTuple):
    """A diagram; `width` and `height` are those of its view box."""

    width: int
    height: int
    parts: Sequence[FlowPart]
    lines: Sequence[FlowLine]


class _Layout(NamedTuple):
    width: int
    height: int
    is_horizontal: bool
    boxes: Mapping[str, Box]


_CONNECTIONS: Final = (
    ("bots", "LOG"),
    *(("LOG", name) for name in ("persist", "index", "dedupe")),
    *(("WORK", name) for name in ("compact", "extract", "maintain")),
    ("persist", "PostgreSQL"),
    *((name, "Qdrant") for name in ("index", "dedupe")),
    *((name, "models") for name in ("compact", "extract")),
    *((name, "retrieve") for name in ("PostgreSQL", "Qdrant")),
)

_WIDE: Final = _Layout(
    1000,
    452,
    True,
    {
        "bots": Box(6, 118, 116, 110),
        "LOG": Box(196, 20, 132, 206),
        "WORK": Box(196, 250, 132, 176),
        "persist": Box(410, 20, 170, 58),
        "index": Box(410, 94, 170, 58),
        "dedupe": Box(410, 168, 170, 58),
        "compact": Box(410, 250, 170, 50),
        "extract": Box(410, 313, 170, 50),
        "maintain": Box(410, 376, 170, 50),
        "PostgreSQL": Box(668, 20, 132, 76),
        "Qdrant": Box(668, 150, 132, 76),
        "models": Box(668, 276, 132, 64),
        "retrieve": Box(872, 76, 122, 96),
    },
)

_TALL: Final = _Layout(
    360,
    662,
    False,
    {
        "bots": Box(6, 6, 348, 50),
        "LOG": Box(6, 92, 168, 66),
        "WORK": Box(186, 92, 168, 66),
        "persist": Box(6, 196, 168, 58),
        "index": Box(6, 266, 168, 58),
        "dedupe": Box(6, 336, 168, 58),
        "compact": Box(186, 196, 168, 58),
        "extract": Box(186, 266, 168, 58),
        "maintain": Box(186, 336, 168, 58),
        "PostgreSQL": Box(6, 446, 110, 66),
        "Qdrant": Box(125, 446, 110, 66),
        "models": Box(244, 446, 110, 66),
        "retrieve": Box(6, 566, 348, 66),
    },
)


def draw_pictures(labels: Mapping[str, PartLabel]) -> tuple[Picture, Picture]:
    """Return the diagram for wide screens and the diagram for narrow screens.

    `labels` has the label of each part, by the name of the part.
    """
    return _draw_picture(_WIDE, labels), _draw_picture(_TALL, labels)


def _draw_picture(layout: _Layout, labels: Mapping[str, PartLabel]) -> Picture:
    boxes = layout.boxes
    path = _draw_horizontal_line if layout.is_horizontal else _draw_vertical_line
    ways = [FlowLine(path(boxes[a], boxes[b]), _is_busy(labels, a, b)) for a, b in _CONNECTIONS]
    ways.append(FlowLine(_draw_reply_line(layout), labels["retrieve"].busy))
    parts = [FlowPart(name, box, labels[name]) for name, box in boxes.items()]
    return Picture(layout.width, layout.height, parts, ways)


def _is_busy(labels: Mapping[str, PartLabel], start: str, end: str) -> bool:
    """Return whether the line from the part `start` to the part `end` is shown as busy.

    The line is busy if the part `end` is busy. If that part is neither a process nor a stream, the part
    `start` counts instead.
    """
    return labels[end if labels[end].kind in ("process", "stream") else start].busy


def _draw_horizontal_line(start: Box, end: Box) -> str:
    x, to_x = start.x + start.width, end.x
    y, to_y = _clamp_to_box(end.middle[1], start), _clamp_to_box(end.middle[1], end)
    bend = (x + to_x) / 2
    return f"M{x} {y:g}C{bend:g} {y:g} {bend:g} {to_y:g} {to_x} {to_y:g}"


def _draw_vertical_line(start: Box, end: Box) -> str:
    x, to_x = start.middle[0], end.middle[0]
    if start.width > end.width:
        x = to_x
    elif end.width > start.width:
        to_x = x
    y = start.y + start.height
    bend = (y + end.y) / 2
    return f"M{x:g} {y}C{x:g} {bend:g} {to_x:g} {bend:g} {to_x:g} {end.y}"


def _clamp_to_box(y: float, box: Box) -> float:
    return min(max(y, box.y + 14), box.y + box.height - 14)


def _draw_reply_line(layout: _Layout) -> str:
    """Return the path of the replies of `retrieve`.

    In the wide diagram, the path leads around all other parts to the bots; in the tall one, to the lower
    edge.
    """
    bots, retrieve = layout.boxes["bots"], layout.boxes["retrieve"]
    if layout.is_horizontal:
        x, y = retrieve.middle[0], retrieve.y + retrieve.height
        low, to_x = layout.height - 10, bots.middle[0]
        return (
            f"M{x:g} {y}V{low - 14}Q{x:g} {low} {x - 14:g} {low}H{to_x + 14:g}"
            f"Q{to_x:g} {low} {to_x:g} {low - 14}V{bots.y + bots.height}"
        )
    y, low = retrieve.y + retrieve.height, layout.height - 8
    return f"M{retrieve.middle[0]:g} {y}V{low}"
