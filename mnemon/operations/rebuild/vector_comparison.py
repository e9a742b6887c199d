"""Comparison of two generations of vectors, point by point."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from mnemon_infra.database.generations.comparison import Difference
from mnemon_infra.models.embedding import Dense
from mnemon_infra.vectors.edge.owner import MOST
from mnemon_infra.vectors.port import Collection, Point, PointPages

MIN_COSINE: Final = 0.9999
"""Minimum cosine of two vectors of one text: a repeated answer differs in the last digits; engines round."""

WEIGHT_TOLERANCE: Final = 1e-6
"""Relative tolerance of the weights of terms."""

_SHOWN_NUMBERS: Final = 4
"""Maximum number of components of a dense vector that a difference shows."""


class ComparedPoints(NamedTuple):
    """Comparison of one page of a collection.

    Attributes:
        points: number of live points that were compared.
        following: first point id of the next page; None at the end.
    """

    points: int
    differences: list[Difference]
    following: UUID | None


def name_table(collection: Collection) -> str:
    """Return the name of a collection for reports that list tables."""
    return f"vectors of {collection}"


async def compare_points(
    collection: Collection, live: PointPages, rebuilt: PointPages, begin: UUID | None
) -> ComparedPoints:
    """Compare one page of a collection's points, live with rebuilt.

    `begin` is the first id of the page; None begins at the first point.

    Raises:
        VectorsUnavailable: the engine of one side does not answer.
    """
    live_page = await live.read_page(collection, begin, MOST)
    # A page of large points is short; further points of the other side would be read again for the next page.
    pages = live_page, await rebuilt.read_page(collection, begin, len(live_page.points) or MOST)
    # Compare only up to the last id that both pages cover.
    ends = [page.points[-1].id for page in pages if page.following is not None]
    end = min(ends, default=None)
    one, other = (
        {point.id: point for point in page.points if end is None or point.id <= end} for page in pages
    )
    pairs = [(one.get(place), other.get(place)) for place in sorted(one.keys() | other.keys())]
    found = [difference for pair in pairs if (difference := _compare_pair(collection, *pair))]
    return ComparedPoints(len(one), found, end and UUID(int=end.int + 1))


def _compare_pair(collection: Collection, live: Point | None, rebuilt: Point | None) -> Difference | None:
    point = live or rebuilt
    assert point is not None, "at least one side has the point"
    tenant, user = point.owner
    key = {"tenant": tenant, "user_id": user, "id": str(point.id)}
    if live is None or rebuilt is None:
        sides = [_point_to_json(each) if each else None for each in (live, rebuilt)]
        return Difference(name_table(collection), key, *sides)
    differing = [
        name
        for name, is_same in (
            ("payload", (live.owner, live.payload) == (rebuilt.owner, rebuilt.payload)),
            ("words", _has_same_words(live, rebuilt)),
            ("meaning", _has_same_meaning(live.dense, rebuilt.dense)),
        )
        if not is_same
    ]
    if not differing:
        return None
    return Difference(
        name_table(collection),
        key,
        {name: _point_to_json(live)[name] for name in differing},
        {name: _point_to_json(rebuilt)[name] for name in differing},
    )


def _has_same_words(one: Point, other: Point) -> bool:
    return list(one.sparse.indices) == list(other.sparse.indices) and np.allclose(
        one.sparse.values, other.sparse.values, rtol=WEIGHT_TOLERANCE, atol=0
    )


def _has_same_meaning(one: Dense | None, other: Dense | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other) or (len(one) == len(other) and float(one @ other) >= MIN_COSINE)


def _point_to_json(point: Point) -> Mapping[str, Any]:
    terms = zip(point.sparse.indices, point.sparse.values, strict=True)
    dense = None if point.dense is None else [round(float(each), 6) for each in point.dense[:_SHOWN_NUMBERS]]
    return {
        "payload": {"owner": list(point.owner), **point.payload},
        "words": {str(index): round(float(value), 6) for index, value in terms},
        "meaning": dense,
    }
