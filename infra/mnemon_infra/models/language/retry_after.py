"""Parsing of the HTTP header `Retry-After`."""

from collections.abc import Mapping


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait; None if the header is absent, or has a date or another text."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None
