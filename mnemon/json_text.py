"""Texts that may be JSON."""

import json
from typing import Any


def parse_json_or_text(text: str) -> Any:
    """Return the value of a JSON text; the text itself if it is not JSON, or is nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
