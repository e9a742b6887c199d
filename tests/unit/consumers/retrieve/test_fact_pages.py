"""Pages of facts: each fact is on one page, even if facts are forgotten between two requests."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.retrieve.verbs.facts.view import build_page
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import Tier
from mnemon_infra.database.facts.fact_repository import FactRecord

AT = datetime(2026, 1, 1, tzinfo=UTC)


def fact(seq: int, tier: Tier = "archive", importance: int = 5) -> FactRecord:
    return FactRecord(
        id=f"f{seq}",
        text=f"fact {seq}",
        kind="user_fact",
        tier=tier,
        importance=importance,
        expires_at=None,
        saved_at=AT,
        changed_at=AT,
        seq=seq,
        event_id=f"e{seq}",
        unsupported=(),
    )


FACTS = st.lists(
    st.builds(
        fact,
        seq=st.integers(1, 2**62),
        tier=st.sampled_from(["profile", "working", "archive"]),
        importance=st.integers(1, 10),
    ),
    unique_by=lambda each: each.seq,
    max_size=30,
)


@given(facts=FACTS, limit=st.integers(1, 10))
def test_the_pages_together_are_all_facts_in_order(facts: list[FactRecord], limit: int) -> None:
    whole = build_page(facts, max(1, len(facts)), None)
    assert whole.next is None
    pages = [build_page(facts, limit, None)]
    while (after := pages[-1].next) is not None:
        pages.append(build_page(facts, limit, after))
    assert [each for page in pages for each in page.facts] == list(whole.facts)
    assert {page.total for page in pages} == {len(facts)}
    assert all(page.facts for page in pages[1:]), "no page is empty"


def test_page_skips_no_fact_after_a_fact_was_forgotten() -> None:
    facts = [fact(seq) for seq in range(1, 6)]
    first = build_page(facts, 2, None)
    left = [each for each in facts if each not in first.facts]
    assert list(build_page(left, 9, first.next).facts) == list(build_page(facts, 9, None).facts)[2:]


@pytest.mark.parametrize(
    "after", ["", "2", "3.-5.-1", "0.-5.-1\n", "0.-5.-1.0", "०.-5.-1", "0.-5.-" + "9" * 5000]
)
def test_invalid_beginning_of_a_page_is_refused(after: str) -> None:
    with pytest.raises(InvalidBody, match="after"):
        build_page([], 1, after)
