"""Neighbours of a proposal: from the vector store, and from earlier decisions of the same turn."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mnemon_consumers.dedupe.decide import DecisionEvent
from mnemon_consumers.dedupe.neighbours import Neighbours
from mnemon_consumers.dedupe.state.user import UserState
from mnemon_contracts.events.memory import Decision, Fact, FactForgottenV1, FactSavedV1, FactUpdatedV1
from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.config import Deployment
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.vector_index import VectorIndex, build_fact_item, build_points, open_index

ANNA = ("acme", "anna")
AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
TEA = "Drinks green tea in the morning"
MORE_TEA = "Drinks green tea every morning"
HARP = "Plays the harp in a small band"


@pytest.fixture
async def vector_index(tmp_path: Path) -> AsyncIterator[VectorIndex]:
    async with open_index(Deployment(vectors_folder=tmp_path / "vectors"), Embedding()) as vector_index:
        yield vector_index


def kept(text: str, **said: Any) -> Fact:
    return Fact(text=text, kind="user_fact", tier="archive", importance=5, **said)


def saved(fact_id: str, text: str, **said: Any) -> DecisionEvent:
    by = Decision(proposal_id=f"p-{fact_id}")
    return "fact.saved", FactSavedV1(
        id=f"saved-{fact_id}", fact_id=fact_id, fact=kept(text, **said), decision=by
    )


def updated(fact_id: str, former: str, text: str, *, importance: int = 5) -> DecisionEvent:
    now = kept(text).model_copy(update={"importance": importance})
    return "fact.updated", FactUpdatedV1(
        id=f"updated-{fact_id}-{importance}",
        fact_id=fact_id,
        fact=now,
        former=kept(former),
        decision=Decision(proposal_id=f"again-{fact_id}"),
    )


def apply(neighbours: Neighbours, known: UserState, *decided: DecisionEvent) -> None:
    for each in decided:
        neighbours.record_decision(each)
        known.apply(each[1], str(each[1].id), AT)


async def turn(vector_index: VectorIndex, known: UserState, *decided: DecisionEvent) -> None:
    neighbours = Neighbours(vector_index, ANNA, known)
    apply(neighbours, known, *decided)
    await neighbours.write_points()


async def near(neighbours: Neighbours, text: str, at: datetime = AT) -> dict[str, float]:
    return {each.fact_id: round(each.similarity, 3) for each in await neighbours.find_nearest(text, at)}


async def versions(vector_index: VectorIndex) -> dict[str, str]:
    return {
        str(each.payload["fact_id"]): str(each.payload["event_id"])
        async for page in vector_index.vectors.scroll(Collection.MEMORIES, ANNA)
        for each in page
    }


async def test_a_fact_of_an_earlier_turn_is_found(vector_index: VectorIndex) -> None:
    known = UserState()
    await turn(vector_index, known, saved("ar_001", TEA), saved("ar_002", HARP))
    later = Neighbours(vector_index, ANNA, known)
    await later.look_up_texts([MORE_TEA])

    found = await near(later, MORE_TEA)

    assert found["ar_001"] > 0.8 > found["ar_002"]


async def test_neighbour_from_the_turn_equals_neighbour_from_the_engine(
    vector_index: VectorIndex,
) -> None:
    known, written = UserState(), UserState()
    await turn(vector_index, written, saved("ar_001", TEA))
    by_engine = Neighbours(vector_index, ANNA, written)
    await by_engine.look_up_texts([MORE_TEA])
    here = Neighbours(vector_index, ("acme", "boris"), known)
    await here.look_up_texts([TEA, MORE_TEA])
    apply(here, known, saved("ar_001", TEA))

    assert await near(here, MORE_TEA) == await near(by_engine, MORE_TEA)


async def test_fact_reworded_in_the_turn_matches_by_its_new_words_only(vector_index: VectorIndex) -> None:
    known = UserState()
    await turn(vector_index, known, saved("ar_001", TEA))
    neighbours = Neighbours(vector_index, ANNA, known)
    await neighbours.look_up_texts([MORE_TEA, HARP])
    apply(neighbours, known, updated("ar_001", TEA, HARP))

    found = await near(neighbours, MORE_TEA)

    assert found["ar_001"] < 0.5
    assert (await near(neighbours, HARP))["ar_001"] == 1


async def test_confirmed_fact_keeps_its_similarity(vector_index: VectorIndex) -> None:
    known = UserState()
    await turn(vector_index, known, saved("ar_001", TEA))
    neighbours = Neighbours(vector_index, ANNA, known)
    await neighbours.look_up_texts([MORE_TEA])
    before = await near(neighbours, MORE_TEA)
    apply(neighbours, known, updated("ar_001", TEA, TEA, importance=9))

    assert await near(neighbours, MORE_TEA) == before != {}


async def test_fact_ended_in_the_turn_is_no_neighbour(vector_index: VectorIndex) -> None:
    known = UserState()
    await turn(
        vector_index, known, saved("ar_001", TEA), saved("ar_002", TEA, expires_at=AT + timedelta(days=1))
    )
    neighbours = Neighbours(vector_index, ANNA, known)
    await neighbours.look_up_texts([MORE_TEA])
    apply(
        neighbours,
        known,
        ("fact.forgotten", FactForgottenV1(id="f1", fact_id="ar_001", reason="superseded")),
    )

    assert (await near(neighbours, MORE_TEA)).keys() == {"ar_002"}
    assert await near(neighbours, MORE_TEA, AT + timedelta(days=2)) == {}


async def test_turn_writes_only_last_versions_of_live_facts(
    vector_index: VectorIndex,
) -> None:
    known = UserState()
    await turn(vector_index, known, saved("ar_001", TEA), saved("ar_002", HARP))
    known.findable = True
    neighbours = Neighbours(vector_index, ANNA, known)
    apply(
        neighbours,
        known,
        updated("ar_001", TEA, MORE_TEA),
        saved("ar_003", "Keeps bees"),
        updated("ar_001", MORE_TEA, MORE_TEA, importance=9),
        ("fact.forgotten", FactForgottenV1(id="f1", fact_id="ar_002", reason="superseded")),
    )
    await neighbours.write_points()

    assert await versions(vector_index) == {"ar_001": "updated-ar_001-9", "ar_003": "saved-ar_003"}
    assert known.findable


async def test_point_of_former_version_matches_no_fact(vector_index: VectorIndex) -> None:
    known = UserState()
    await turn(vector_index, known, saved("ar_001", TEA))
    known.findable = True
    stale = await build_points(vector_index, [build_fact_item(ANNA, "ar_001", "of long ago", TEA)])
    await vector_index.vectors.upsert(Collection.MEMORIES, stale)
    neighbours = Neighbours(vector_index, ANNA, known)
    await neighbours.look_up_texts([MORE_TEA])

    assert await near(neighbours, MORE_TEA) == {}


async def test_facts_without_points_are_made_findable_before_the_first_search(
    vector_index: VectorIndex,
) -> None:
    known = UserState()
    known.apply(saved("ar_001", TEA)[1], "saved-ar_001", AT)
    neighbours = Neighbours(vector_index, ANNA, known)
    await neighbours.look_up_texts([MORE_TEA])

    assert (await near(neighbours, MORE_TEA)).keys() == {"ar_001"}
    assert await versions(vector_index) == {"ar_001": "saved-ar_001"}
    assert known.findable
