"""How a point is laid out, in either engine."""

from typing import Any

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
