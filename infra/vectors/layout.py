"""How a point is laid out, in either engine."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from infra.vectors.port import Point

DENSE, SPARSE = "dense", "sparse"
"""The names of the vectors."""

TENANT, USER = "tenant", "user"
"""The indexed fields, beside those of the payload."""

COMPARED = 2_000
"""Points of one user that are compared one by one; among more, the engine walks a graph of them."""


def kept(point: Point) -> dict[str, Any]:
    """The fields that the engine keeps."""
    tenant, user = point.owner
    return {**point.payload, TENANT: tenant, USER: user}


def given(fields: Mapping[str, Any] | None) -> dict[str, JsonValue]:
    """The payload, as the point came with it."""
    return {name: value for name, value in (fields or {}).items() if name not in (TENANT, USER)}
