"""How long a server wants to be left alone."""

from collections.abc import Mapping


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds by the headers of an answer; None where they say none, or a date."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None
