"""Facts near in meaning, from the vector engine and from the turn itself."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mnemon_consumers.dedupe.decide import Decided
from mnemon_consumers.dedupe.neighbours import Neighbours
from mnemon_consumers.dedupe.state.user import UserState
from mnemon_contracts.events.memory import Decision, Fact, FactForgottenV1, FactSavedV1, FactUpdatedV1
from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.config import Deployment
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.vector_index import VectorIndex, fact, opened, points

ANNA = ("acme", "anna")
AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
TEA = "Drinks green tea in the morning"
MORE_TEA = "Drinks green tea every morning"
HARP = "Plays the harp in a small band"


@pytest.fixture
async def finding(tmp_path: Path) -> AsyncIterator[VectorIndex]:
    async with opened(Deployment(vectors_folder=tmp_path / "vectors"), Embedding()) as finding:
        yield finding


def kept(text: str, **said: Any) -> Fact:
    return Fact(text=text, kind="user_fact", tier="archive", importance=5, **said)


def saved(fact_id: str, text: str, **said: Any) -> Decided:
    by = Decision(proposal_id=f"p-{fact_id}")
    return "fact.saved", FactSavedV1(
        id=f"saved-{fact_id}", fact_id=fact_id, fact=kept(text, **said), decision=by
    )


def updated(fact_id: str, former: str, text: str, *, importance: int = 5) -> Decided:
    now = kept(text).model_copy(update={"importance": importance})
    return "fact.updated", FactUpdatedV1(
        id=f"updated-{fact_id}-{importance}",
        fact_id=fact_id,
        fact=now,
        former=kept(former),
        decision=Decision(proposal_id=f"again-{fact_id}"),
    )


def apply(neighbours: Neighbours, known: UserState, *decided: Decided) -> None:
    for each in decided:
        neighbours.note(each)
        known.apply(each[1], str(each[1].id), AT)


async def turn(finding: VectorIndex, known: UserState, *decided: Decided) -> None:
    neighbours = Neighbours(finding, ANNA, known)
    apply(neighbours, known, *decided)
    await neighbours.write()


async def near(neighbours: Neighbours, text: str, at: datetime = AT) -> dict[str, float]:
    return {each.fact_id: round(each.similarity, 3) for each in await neighbours.nearest(text, at)}


async def versions(finding: VectorIndex) -> dict[str, str]:
    return {
        str(each.payload["fact_id"]): str(each.payload["event_id"])
        async for page in finding.vectors.scroll(Collection.MEMORIES, ANNA)
        for each in page
    }


async def test_a_fact_of_an_earlier_turn_is_found(finding: VectorIndex) -> None:
    known = UserState()
    await turn(finding, known, saved("ar_001", TEA), saved("ar_002", HARP))
    later = Neighbours(finding, ANNA, known)
    await later.look_up([MORE_TEA])

    found = await near(later, MORE_TEA)

    assert found["ar_001"] > 0.8 > found["ar_002"]


async def test_a_fact_of_the_same_turn_is_as_near_as_one_that_the_engine_has(finding: VectorIndex) -> None:
    known, written = UserState(), UserState()
    await turn(finding, written, saved("ar_001", TEA))
    by_engine = Neighbours(finding, ANNA, written)
    await by_engine.look_up([MORE_TEA])
    here = Neighbours(finding, ("acme", "boris"), known)
    await here.look_up([TEA, MORE_TEA])
    apply(here, known, saved("ar_001", TEA))

    assert await near(here, MORE_TEA) == await near(by_engine, MORE_TEA)


async def test_what_was_reworded_in_the_turn_is_near_by_its_new_words_only(finding: VectorIndex) -> None:
    known = UserState()
    await turn(finding, known, saved("ar_001", TEA))
    neighbours = Neighbours(finding, ANNA, known)
    await neighbours.look_up([MORE_TEA, HARP])
    apply(neighbours, known, updated("ar_001", TEA, HARP))

    found = await near(neighbours, MORE_TEA)

    assert found["ar_001"] < 0.5
    assert (await near(neighbours, HARP))["ar_001"] == 1


async def test_what_was_only_said_again_stays_as_near_as_it_was(finding: VectorIndex) -> None:
    known = UserState()
    await turn(finding, known, saved("ar_001", TEA))
    neighbours = Neighbours(finding, ANNA, known)
    await neighbours.look_up([MORE_TEA])
    before = await near(neighbours, MORE_TEA)
    apply(neighbours, known, updated("ar_001", TEA, TEA, importance=9))

    assert await near(neighbours, MORE_TEA) == before != {}


async def test_what_ended_in_the_turn_is_near_to_nothing(finding: VectorIndex) -> None:
    known = UserState()
    await turn(finding, known, saved("ar_001", TEA), saved("ar_002", TEA, expires_at=AT + timedelta(days=1)))
    neighbours = Neighbours(finding, ANNA, known)
    await neighbours.look_up([MORE_TEA])
    apply(
        neighbours,
        known,
        ("fact.forgotten", FactForgottenV1(id="f1", fact_id="ar_001", reason="superseded")),
    )

    assert (await near(neighbours, MORE_TEA)).keys() == {"ar_002"}
    assert await near(neighbours, MORE_TEA, AT + timedelta(days=2)) == {}


async def test_a_turn_leaves_the_last_version_of_each_fact_and_none_of_what_ended(
    finding: VectorIndex,
) -> None:
    known = UserState()
    await turn(finding, known, saved("ar_001", TEA), saved("ar_002", HARP))
    known.findable = True
    neighbours = Neighbours(finding, ANNA, known)
    apply(
        neighbours,
        known,
        updated("ar_001", TEA, MORE_TEA),
        saved("ar_003", "Keeps bees"),
        updated("ar_001", MORE_TEA, MORE_TEA, importance=9),
        ("fact.forgotten", FactForgottenV1(id="f1", fact_id="ar_002", reason="superseded")),
    )
    await neighbours.write()

    assert await versions(finding) == {"ar_001": "updated-ar_001-9", "ar_003": "saved-ar_003"}
    assert known.findable


async def test_a_point_of_a_former_version_stands_for_no_fact(finding: VectorIndex) -> None:
    known = UserState()
    await turn(finding, known, saved("ar_001", TEA))
    known.findable = True
    stale = await points(finding, [fact(ANNA, "ar_001", "of long ago", TEA)])
    await finding.vectors.upsert(Collection.MEMORIES, stale)
    neighbours = Neighbours(finding, ANNA, known)
    await neighbours.look_up([MORE_TEA])

    assert await near(neighbours, MORE_TEA) == {}


async def test_facts_without_points_are_made_findable_before_the_first_search(finding: VectorIndex) -> None:
    known = UserState()
    known.apply(saved("ar_001", TEA)[1], "saved-ar_001", AT)
    neighbours = Neighbours(finding, ANNA, known)
    await neighbours.look_up([MORE_TEA])

    assert (await near(neighbours, MORE_TEA)).keys() == {"ar_001"}
    assert await versions(finding) == {"ar_001": "saved-ar_001"}
    assert known.findable
