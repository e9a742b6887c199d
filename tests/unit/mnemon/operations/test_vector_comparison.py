"""Comparison of live and rebuilt points, although a page of live points may have fewer than requested."""

from uuid import UUID

from mnemon.operations.rebuild.vector_comparison import compare_points
from mnemon_infra.models.embedding import Sparse
from mnemon_infra.vectors.port import PAGE, Collection, Point, PointPage

POINTS = 60


class ListedPoints:
    """Points with ids from 1, at most `room` in a page; `read` counts the points of all pages."""

    def __init__(self, ids: list[int], room: int) -> None:
        self.read = 0
        self._ids = ids
        self._room = room

    async def read_page(self, _: Collection, begin: UUID | None = None, most: int = PAGE) -> PointPage:
        left = [each for each in self._ids if begin is None or each >= begin.int]
        page = left[: min(most, self._room)]
        self.read += len(page)
        points = [Point(UUID(int=each), ("acme", "anna"), {}, Sparse([1], [1.0])) for each in page]
        return PointPage(points, UUID(int=left[len(page)]) if len(left) > len(page) else None)


async def list_differing_ids(live: ListedPoints, rebuilt: ListedPoints) -> list[int]:
    found: list[int] = []
    begin: UUID | None = None
    while True:
        page = await compare_points(Collection.MESSAGES, live, rebuilt, begin)
        found += [UUID(each.key["id"]).int for each in page.differences]
        begin = page.following
        if begin is None:
            return found


async def test_rebuilt_points_are_read_about_once_where_live_pages_are_short() -> None:
    ids = list(range(1, POINTS + 1))
    live, rebuilt = ListedPoints(ids, 3), ListedPoints(ids, PAGE)
    assert await list_differing_ids(live, rebuilt) == []
    assert rebuilt.read <= POINTS + 3


async def test_points_of_one_side_only_are_found_where_live_pages_are_short() -> None:
    ids = list(range(1, POINTS + 1))
    lacking = [each for each in ids if each % 7 and each < 50]
    missing = sorted(set(ids) - set(lacking))
    assert await list_differing_ids(ListedPoints(lacking, 3), ListedPoints(ids, PAGE)) == missing
    assert await list_differing_ids(ListedPoints(ids, 3), ListedPoints(lacking, PAGE)) == missing
    assert await list_differing_ids(ListedPoints([], 3), ListedPoints(ids, PAGE)) == ids
