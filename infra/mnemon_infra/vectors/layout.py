"""How a point is laid out, in either engine."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.vectors.port import Point

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


def stored(place: UUID, payload: Mapping[str, Any], vectors: Mapping[str, Any]) -> Point:
    """A point as the engine gives it back."""
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
