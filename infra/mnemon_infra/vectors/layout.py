"""Layout of a point, the same in both engines."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.vectors.port import Point

DENSE, SPARSE = "dense", "sparse"
"""Names of a point's vectors."""

TENANT, USER = "tenant", "user"
"""Names of the stored fields that contain the owner of a point, in addition to its payload."""

NO_TENANT = ""
"""Value of the field `TENANT` that no point has.

A query with `has_rarity` names it: among no points, the engine takes all terms for equally rare.
"""

FULL_SCAN_POINTS = 2_000
"""Maximum points of a user that the engine compares one by one; for more points, it uses an HNSW graph."""


def build_payload(point: Point) -> dict[str, Any]:
    """Return the fields that the engine stores with a point: its payload and its owner."""
    tenant, user = point.owner
    return {**point.payload, TENANT: tenant, USER: user}


def restore_point(place: UUID, payload: Mapping[str, Any], vectors: Mapping[str, Any]) -> Point:
    """Return a point from the values that the engine has stored."""
    terms = vectors[SPARSE]
    weights = sorted(zip(terms.indices, terms.values, strict=True))
    dense = vectors.get(DENSE)
    return Point(
        place,
        (payload[TENANT], payload[USER]),
        {name: value for name, value in payload.items() if name not in (TENANT, USER)},
        Sparse([index for index, _ in weights], [value for _, value in weights]),
        None if dense is None else np.asarray(dense, dtype=np.float32),
    )
