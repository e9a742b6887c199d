"""Tests of every vector engine.

Subclasses have fixtures with empty vector stores: `vectors` has dense vectors, and `wordy` may have none.
"""

import asyncio
from collections.abc import Mapping, Sequence
from uuid import UUID, uuid4

import numpy as np
import pytest
from pydantic import JsonValue

from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.subjects import Owner
from mnemon_infra.models.embedding import Dense, Sparse
from mnemon_infra.vectors.port import Collection, IdFilter, Point, PointHit, StoredPoint, VectorStore

DIMENSION = 8
MODEL = "test/eight"

ANNA: Owner = ("acme", "anna")
BORIS: Owner = ("acme", "boris")
OTHER_ANNA: Owner = ("globex", "anna")

TEA, CAKE, RARE, OFTEN = 1, 2, 3, 4


def direction(*weights: float) -> Dense:
    """Return a vector of length 1 with these first coordinates, scaled; the others are 0."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[: len(weights)] = weights
    return vector / np.float32(np.linalg.norm(vector))


def words(*terms: int) -> Sparse:
    return Sparse(terms, [1.0] * len(terms))


def point(
    name: str,
    owner: Owner = ANNA,
    terms: Sequence[int] = (TEA,),
    dense: Dense | None = None,
    payload: Mapping[str, JsonValue] | None = None,
) -> Point:
    """Return a point whose id derives from `name`, which is also in its payload.

    By default, the point has one term and no dense vector.
    """
    return Point(
        derive_point_id(*owner, "test", name), owner, {"name": name, **(payload or {})}, words(*terms), dense
    )


def names(found: Sequence[PointHit | StoredPoint]) -> list[JsonValue]:
    return [each.payload["name"] for each in found]


async def scrolled(vectors: VectorStore, owner: Owner) -> list[StoredPoint]:
    return [each async for page in vectors.scroll(Collection.MEMORIES, owner) for each in page]


class Suite:
    """Tests of a vector store with dense vectors and terms."""

    async def test_a_point_is_found_as_it_was_given(self, vectors: VectorStore) -> None:
        payload: dict[str, JsonValue] = {"seq": 7, "event_id": "e1", "nothing": None, "list": [1, "two"]}
        given = point("given", dense=direction(1), payload=payload)
        await vectors.upsert(Collection.MEMORIES, [given])
        ((by_meaning,), (by_word,)) = await vectors.search(
            Collection.MEMORIES, ANNA, [direction(1), words(TEA)], 10
        )
        assert by_meaning.id == by_word.id == given.id
        assert isinstance(by_meaning.id, UUID)
        assert by_meaning.payload == by_word.payload == given.payload
        assert by_meaning.score == pytest.approx(1, abs=1e-5)
        assert by_word.score > 0

    async def test_the_nearest_come_first_and_no_more_than_asked_for(self, vectors: VectorStore) -> None:
        points = [
            point("off", dense=direction(1, 5)),
            point("exact", dense=direction(1)),
            point("near", dense=direction(5, 1)),
        ]
        await vectors.upsert(Collection.MEMORIES, points)
        (hits,) = await vectors.search(Collection.MEMORIES, ANNA, [direction(1)], 2)
        assert names(hits) == ["exact", "near"]
        assert hits[1].score == pytest.approx(5 / 26**0.5, abs=1e-5)

    async def test_each_query_has_its_own_hits(self, vectors: VectorStore) -> None:
        await vectors.upsert(
            Collection.MEMORIES,
            [
                point("tea", terms=(TEA,), dense=direction(1)),
                point("cake", terms=(CAKE,), dense=direction(0, 1)),
            ],
        )
        found = await vectors.search(
            Collection.MEMORIES, ANNA, [words(CAKE), direction(1, 0.1), words(TEA), words(RARE), words()], 10
        )
        assert [names(hits) for hits in found] == [["cake"], ["tea", "cake"], ["tea"], [], []]

    async def test_pages_in_the_order_of_ids_as_they_were_given(self, vectors: VectorStore) -> None:
        owners = [ANNA, BORIS, OTHER_ANNA]
        given = [
            point(f"{n}", owners[n % 3], (TEA, CAKE), direction(1, n), {"seq": n, "nothing": None})
            for n in range(25)
        ]
        await vectors.upsert(Collection.MEMORIES, given)
        found: list[Point] = []
        begin = None
        while True:
            page = await vectors.read_page(Collection.MEMORIES, begin, 10)
            assert len(page.points) <= 10
            found += page.points
            begin = page.following
            if begin is None:
                break
        whole = await vectors.read_page(Collection.MEMORIES, owner=ANNA)
        assert [each.id for each in whole.points] == [each.id for each in found if each.owner == ANNA]
        for one, other in zip(sorted(given, key=lambda each: each.id), found, strict=True):
            assert (one.id, one.owner, one.payload) == (other.id, other.owner, other.payload)
            assert (list(other.sparse.indices), list(other.sparse.values)) == ([TEA, CAKE], [1, 1])
            assert other.dense is not None
            assert other.dense == pytest.approx(one.dense, abs=1e-6)

    async def test_no_query_no_hits(self, vectors: VectorStore) -> None:
        assert await vectors.search(Collection.MEMORIES, ANNA, [], 10) == []

    async def test_a_point_without_a_dense_vector_is_found_by_its_words(self, vectors: VectorStore) -> None:
        await vectors.upsert(
            Collection.MEMORIES, [point("wordy"), point("both", terms=(CAKE,), dense=direction(1))]
        )
        found = await vectors.search(Collection.MEMORIES, ANNA, [direction(1), words(TEA)], 10)
        assert [names(hits) for hits in found] == [["both"], ["wordy"]]


class WordySuite:
    """Tests that hold with and without dense vectors."""

    async def test_nothing_there_nothing_found(self, wordy: VectorStore) -> None:
        assert await wordy.search(Collection.MEMORIES, ANNA, [words(TEA)], 10) == [[]]
        assert await wordy.count(Collection.MEMORIES) == 0
        assert await scrolled(wordy, ANNA) == []
        await wordy.upsert(Collection.MEMORIES, [])
        await wordy.delete(Collection.MEMORIES, ANNA)

    async def test_owners_do_not_see_each_other(self, wordy: VectorStore) -> None:
        owners = [ANNA, BORIS, OTHER_ANNA]
        await wordy.upsert(Collection.MEMORIES, [point("same", owner) for owner in owners])
        for owner in owners:
            (hits,) = await wordy.search(Collection.MEMORIES, owner, [words(TEA)], 10)
            assert [hit.id for hit in hits] == [derive_point_id(*owner, "test", "same")]
            assert [each.id for each in await scrolled(wordy, owner)] == [hits[0].id]
            assert await wordy.count(Collection.MEMORIES, owner) == 1
        assert await wordy.count(Collection.MEMORIES) == 3

    async def test_collections_are_apart(self, wordy: VectorStore) -> None:
        await wordy.upsert(Collection.MESSAGES, [point("message")])
        assert await wordy.search(Collection.MEMORIES, ANNA, [words(TEA)], 10) == [[]]
        assert await wordy.count(Collection.DOCUMENTS) == 0
        assert await wordy.count(Collection.MESSAGES) == 1

    async def test_an_upsert_takes_the_place_of_the_point(self, wordy: VectorStore) -> None:
        await wordy.upsert(Collection.MEMORIES, [point("a", payload={"seq": 1, "old": True})])
        await wordy.upsert(Collection.MEMORIES, [point("a", terms=(CAKE,), payload={"seq": 2})])
        found = await wordy.search(Collection.MEMORIES, ANNA, [words(TEA), words(CAKE)], 10)
        assert [[hit.payload for hit in hits] for hits in found] == [[], [{"name": "a", "seq": 2}]]
        assert await wordy.count(Collection.MEMORIES) == 1

    async def test_of_copies_in_one_batch_the_last_stays(self, wordy: VectorStore) -> None:
        await wordy.upsert(Collection.MEMORIES, [point("a", payload={"seq": seq}) for seq in (1, 2, 3)])
        assert [each.payload["seq"] for each in await scrolled(wordy, ANNA)] == [3]

    async def test_terms_count_within_the_tenant(self, wordy: VectorStore) -> None:
        """A term weighs by its rarity in the tenant, even if it is common in another tenant."""
        points = [point("rare", terms=(RARE,)), point("often", terms=(OFTEN,))]
        points += [point(f"{n}", BORIS, terms=(OFTEN,)) for n in range(20)]
        await wordy.upsert(Collection.MEMORIES, points)

        async def scores() -> list[float]:
            (hits,) = await wordy.search(Collection.MEMORIES, ANNA, [words(RARE, OFTEN)], 10)
            assert names(hits) == ["rare", "often"]
            return [hit.score for hit in hits]

        alone = await scores()
        elsewhere = [point(f"{n}", OTHER_ANNA, terms=(RARE,)) for n in range(200)]
        await wordy.upsert(Collection.MEMORIES, elsewhere)
        assert await scores() == pytest.approx(alone)

    async def test_query_with_rarity_keeps_its_weights(self, wordy: VectorStore) -> None:
        points = [point("rare", terms=(RARE,)), point("often", terms=(OFTEN,))]
        points += [point(f"{n}", BORIS, terms=(OFTEN,)) for n in range(20)]
        await wordy.upsert(Collection.MEMORIES, points)
        weighed = Sparse([RARE, OFTEN], [1.0, 2.0], has_rarity=True)
        queries = [weighed, words(RARE, OFTEN)]
        hits, others = await wordy.search(Collection.MEMORIES, ANNA, queries, 10)
        assert names(hits) == ["often", "rare"], "the rarity of the collection does not count"
        assert hits[0].score == pytest.approx(2 * hits[1].score)
        assert names(others) == ["rare", "often"], "rarity counts for each query by itself"

    async def test_where_narrows(self, wordy: VectorStore) -> None:
        points = [
            point("one", payload={"document_id": "d1", "chunk": 1}),
            point("two", payload={"document_id": "d1", "chunk": 2}),
            point("three", payload={"document_id": "d2", "chunk": 1}),
        ]
        await wordy.upsert(Collection.MEMORIES, points)
        narrowed: list[tuple[dict[str, str | int], set[str]]] = [
            ({"document_id": "d1"}, {"one", "two"}),
            ({"chunk": 1}, {"one", "three"}),
            ({"document_id": "d1", "chunk": 1}, {"one"}),
            ({"document_id": "d3"}, set()),
        ]
        for where, expected in narrowed:
            (hits,) = await wordy.search(Collection.MEMORIES, ANNA, [words(TEA)], 10, where)
            assert set(names(hits)) == expected

    async def test_ids_narrow_a_search(self, wordy: VectorStore) -> None:
        await wordy.upsert(Collection.MEMORIES, [point(name) for name in "abc"])
        one, other = point("a").id, uuid4()
        everything = {point(name).id for name in "abc"}
        for ids, expected in (
            (IdFilter(frozenset({one, other})), {one}),
            (IdFilter(frozenset({one, other}), is_excluded=True), everything - {one}),
            (IdFilter(frozenset(), is_excluded=True), everything),
        ):
            (hits,) = await wordy.search(Collection.MEMORIES, ANNA, [words(TEA)], 10, ids=ids)
            assert {hit.id for hit in hits} == expected
        only_one = IdFilter(frozenset({one}))
        (hits,) = await wordy.search(Collection.MEMORIES, BORIS, [words(TEA)], 10, ids=only_one)
        assert hits == []

    async def test_points_deleted_by_id_are_gone(self, wordy: VectorStore) -> None:
        await wordy.upsert(Collection.MEMORIES, [point(name) for name in "abc"])
        await wordy.delete(Collection.MEMORIES, ANNA, [point("a").id, point("b").id, uuid4()])
        (hits,) = await wordy.search(Collection.MEMORIES, ANNA, [words(TEA)], 10)
        assert names(hits) == ["c"]
        assert await wordy.count(Collection.MEMORIES) == 1

    async def test_no_ids_delete_nothing(self, wordy: VectorStore) -> None:
        await wordy.upsert(Collection.MEMORIES, [point("a")])
        await wordy.delete(Collection.MEMORIES, ANNA, [])
        assert await wordy.count(Collection.MEMORIES, ANNA) == 1

    async def test_an_owner_deletes_their_own_only(self, wordy: VectorStore) -> None:
        owners = [ANNA, BORIS, OTHER_ANNA]
        await wordy.upsert(Collection.MEMORIES, [point(name, owner) for owner in owners for name in "ab"])
        await wordy.delete(Collection.MEMORIES, ANNA, [point("a", BORIS).id])
        assert await wordy.count(Collection.MEMORIES) == 6
        await wordy.delete(Collection.MEMORIES, ANNA)
        assert [await wordy.count(Collection.MEMORIES, owner) for owner in owners] == [0, 2, 2]

    async def test_a_scroll_gives_each_point_once_page_by_page(self, wordy: VectorStore) -> None:
        await wordy.upsert(Collection.MEMORIES, [point(f"{n}") for n in range(1_000)])
        pages = [page async for page in wordy.scroll(Collection.MEMORIES, ANNA)]
        assert len(pages) > 1
        found = [str(name) for page in pages for name in names(page)]
        assert sorted(found) == sorted(map(str, range(1_000)))

    @pytest.mark.long
    async def test_searches_are_right_while_points_are_written(self, wordy: VectorStore) -> None:
        await wordy.upsert(Collection.MEMORIES, [point("first")])

        async def write(part: int) -> None:
            points = [point(f"{part}-{n}", terms=(CAKE,)) for n in range(100)]
            await wordy.upsert(Collection.MEMORIES, points)

        async def search() -> None:
            for _ in range(20):
                (hits,) = await wordy.search(Collection.MEMORIES, ANNA, [words(TEA)], 10)
                assert names(hits) == ["first"]
                await asyncio.sleep(0)

        await asyncio.gather(*(write(part) for part in range(4)), *(search() for _ in range(4)))
        assert await wordy.count(Collection.MEMORIES, ANNA) == 401
