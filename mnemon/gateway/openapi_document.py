"""The committed OpenAPI document of the gateway."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

DOCUMENT: Final = Path(__file__).with_name("openapi.json")
"""The file, which `mnemon.gateway.openapi` generates."""


@cache
def read_document() -> dict[str, Any]:
    """Return the OpenAPI document from the file `DOCUMENT`; the gateway serves it."""
    document: dict[str, Any] = json.loads(DOCUMENT.read_bytes())
    return document
