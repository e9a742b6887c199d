"""Template filters that format values: `{{ seconds | age }}`. None becomes a dash in a number or a time."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from markupsafe import Markup, escape

from mnemon.display_text import format_count

_UNITS = ("B", "KB", "MB", "GB", "TB")


def format_number(value: float | None) -> str:
    """Format a number with thousands separators, and with one decimal if it is below 10 and not whole."""
    if value is None:
        return "–"
    return f"{value:,.1f}" if 0 < abs(value) < 10 and value != int(value) else f"{value:,.0f}"


def format_age(seconds: float | None) -> str:
    """Format a number of seconds in days, hours, minutes or seconds: `5 min`."""
    if seconds is None:
        return "–"
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def format_size(count: float | None) -> str:
    """Format a number of bytes in B, KB, MB, GB or TB, where 1 KB is 1,000 bytes: `1.5 MB`."""
    if count is None:
        return "–"
    for unit in _UNITS:
        if count < 1000 or unit == _UNITS[-1]:
            return f"{count:,.0f} {unit}" if unit == "B" or count >= 100 else f"{count:,.1f} {unit}"
        count /= 1000
    return ""


def format_time(at: datetime | None) -> Markup:
    """Format a time, in UTC, as an HTML element `time` for people and programs; None becomes a dash."""
    if at is None:
        return Markup("–")
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        utc.isoformat(), utc.strftime("%Y-%m-%d %H:%M:%S"), utc.strftime("%-d %b %Y, %H:%M")
    )


def format_usd(value: float | None) -> str:
    """Format US dollars: two decimals for 0 and from 1 dollar up, else four."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def format_tokens(count: float | None) -> str:
    """Format a number of tokens, with K for thousands and M for millions: `1.5M`."""
    if count is None:
        return "–"
    for unit, many in (("M", 1e6), ("K", 1e3)):
        if count >= many:
            return f"{count / many:.3g}{unit}"
    return f"{count:.0f}"


def format_code(text: str) -> Markup:
    """Render the text between backticks as code."""
    pieces = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if number % 2 else escape(piece)
        for number, piece in enumerate(pieces)
    )


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "number": format_number,
    "counted": format_count,
    "age": format_age,
    "size": format_size,
    "moment": format_time,
    "usd": format_usd,
    "ticked": format_code,
    "tokens": format_tokens,
}
