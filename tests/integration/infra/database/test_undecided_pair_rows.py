"""Queries of undecided pairs of facts."""

from typing import Any

import pytest

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.base import Event
from mnemon_contracts.events.fact_comparison import FactComparedV1, FactMergedV1
from mnemon_contracts.events.memory import (
    BatchCompletedV1,
    BatchFailedV1,
    BatchIntendedV1,
    Decision,
    Fact,
    FactSavedV1,
    FactUpdatedV1,
    Window,
)
from mnemon_contracts.fact_pairs import FactPair
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.undecided_pairs import OpenedPairs, load_batch_pairs, load_pair_records
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery

OWNER, OTHER = ("acme", "u1"), ("acme", "u2")
PAIR = FactPair(fact_id="ar_002", version="s2", other_id="ar_001", other_version="s1")
ANOTHER = FactPair(fact_id="ar_003", version="s3", other_id="ar_001", other_version="s1")


class PairRows:
    """Rows of two users with the same facts."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._seq = 0

    async def put(self, name: str, event: Event, event_id: str | None = None, user: str = "u1") -> None:
        self._seq += 1
        subject = f"memory.acme.{user}.{name}.v1"
        known_as = event_id or f"e{self._seq}"
        delivery = Delivery(subject, event.encode_body(), known_as, "LOG", self._seq, 1, 1.8e9 + self._seq)
        await write_rows(self.database, plan_batch([delivery]).rows)

    async def save(self, number: int, *undecided: str, user: str = "u1") -> None:
        by = Decision(proposal_id=f"p{number}", undecided=undecided)
        saved = FactSavedV1(fact_id=f"ar_00{number}", fact=Fact(text="text"), decision=by)
        await self.put("fact.saved", saved, f"s{number}", user)

    async def intend(self, batch_id: str, *pairs: FactPair, line: int = 0, user: str = "u1") -> None:
        where: dict[str, Any] = {"conversation": "talk", "from_seq": 1, "to_seq": 2}
        window = Window(tenant="acme", user=user, line=line, pairs=pairs, **where)
        batch = BatchIntendedV1(
            batch_id=batch_id, provider="openai", model="m", purpose="extract", windows=(window,)
        )
        await self.put("batch.intended", batch, user=user)


@pytest.fixture
def rows(database: Database) -> PairRows:
    return PairRows(database)


async def test_undecided_decision_opens_pairs_of_its_user_alone(rows: PairRows) -> None:
    await rows.save(1)
    await rows.save(2, "ar_001")
    await rows.save(1, user="u2")
    by = Decision(proposal_id="p3", undecided=("ar_002",))
    fact = Fact(text="text")
    updated = FactUpdatedV1(fact_id="ar_001", fact=fact, former=fact, decision=by)
    await rows.put("fact.updated", updated, "u1")
    await rows.put("fact.updated", FactUpdatedV1(fact_id="ar_001", fact=fact, former=fact), "by hand")
    records = await rows.database.run_query(load_pair_records([OWNER, OTHER]))
    assert records.keys() == {OWNER}
    assert records[OWNER].opened == [
        OpenedPairs(2, "ar_002", "s2", ("ar_001",)),
        OpenedPairs(4, "ar_001", "u1", ("ar_002",)),
    ]


async def test_answered_and_unanswered_comparisons_are_distinguished(rows: PairRows) -> None:
    await rows.save(2, "ar_001")
    await rows.save(2, "ar_001", user="u2")
    await rows.put("fact.compared", FactComparedV1(**PAIR.model_dump(), relation="different"))
    for _ in range(2):
        await rows.put("fact.compared", FactComparedV1(**ANOTHER.model_dump()))
    records = await rows.database.run_query(load_pair_records([OTHER, OWNER]))
    assert (records[OWNER].answered, records[OWNER].unanswered) == ({PAIR}, [ANOTHER, ANOTHER])
    assert (records[OTHER].answered, records[OTHER].unanswered) == (set(), [])


async def test_merges_name_the_surviving_fact(rows: PairRows) -> None:
    await rows.save(2, "ar_001")
    fact = Fact(text="text")
    merged = FactMergedV1(
        fact_id="ar_001", merged_id="ar_003", relation="same", fact=fact, former=fact, compared_id="c"
    )
    await rows.put("fact.merged", merged, "m1")
    record = (await rows.database.run_query(load_pair_records([OWNER])))[OWNER]
    assert (record.merged, record.merges) == ({"ar_003": "ar_001"}, {"m1"})


@pytest.mark.parametrize("is_completed", [True, False])
async def test_batch_reserves_its_pairs_until_it_ends(rows: PairRows, is_completed: bool) -> None:
    await rows.save(2, "ar_001")
    await rows.intend("b1", PAIR, line=3)
    await rows.intend("b2", ANOTHER)
    await rows.intend("b1", ANOTHER, user="u2")

    async def asked(batch_id: str | None = None) -> set[FactPair]:
        return (await rows.database.run_query(load_pair_records([OWNER], batch_id)))[OWNER].asked

    assert await asked() == {PAIR, ANOTHER}
    assert await asked("b1") == {ANOTHER}, "what it asks about itself, it may ask about after a crash"
    assert await rows.database.run_query(load_batch_pairs("b1", [OWNER])) == {(OWNER, 3): [PAIR]}
    end: tuple[str, Event] = (
        ("batch.completed", BatchCompletedV1(batch_id="b1", answered=1))
        if is_completed
        else ("batch.failed", BatchFailedV1(batch_id="b1", error="no"))
    )
    await rows.put(*end, user="u2")
    assert await asked() == {PAIR, ANOTHER}
    await rows.put(*end)
    assert await asked() == {ANOTHER}


async def test_pairs_of_no_users_need_no_query(rows: PairRows) -> None:
    assert await rows.database.run_query(load_pair_records([])) == {}
    assert await rows.database.run_query(load_batch_pairs("b1", [])) == {}
