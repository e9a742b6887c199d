"""Merges of facts after a model's answer about them."""

from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from mnemon_consumers.dedupe.decide import DecisionEvent
from mnemon_consumers.dedupe.merge import Comparison, IgnoredComparison, merge_facts
from mnemon_consumers.dedupe.state.user import UserState
from mnemon_contracts.base import Event
from mnemon_contracts.events.fact_comparison import FactComparedV1, FactMergedV1
from mnemon_contracts.events.memory import (
    Decision,
    Fact,
    FactConfirmedV1,
    FactExpiredV1,
    FactForgottenV1,
    FactSavedV1,
    FactUpdatedV1,
    Lineage,
)
from mnemon_contracts.fact_pairs import Relation
from mnemon_contracts.settings.groups import Dedupe

OWNER = "acme", "u1"
BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
MODEL = Lineage(extractor="extract", prompt_version="extract-2", model="openai/m", batch_id="b1")


class MergedUser:
    """The state that `dedupe` folds from a user's events, which a test applies one by one, a minute apart."""

    def __init__(self) -> None:
        self.known = UserState()
        self.now = BEGIN

    def apply(self, event: Event, event_id: str | None = None) -> None:
        self.now += timedelta(minutes=1)
        self.known.apply(event, event_id or str(event.id), self.now)

    def save(self, number: int, text: str, conversation: str = "talk", **fact: object) -> None:
        event = FactSavedV1(
            fact_id=f"ar_00{number}",
            fact=Fact.model_validate({"text": text, **fact}),
            decision=Decision(proposal_id=f"p{number}"),
            lineage=Lineage(sources=(number,), conversation=conversation),
        )
        self.apply(event, f"s{number}")

    def compare(
        self,
        newer: int,
        older: int,
        relation: Relation | None = "same",
        dedupe: Dedupe | None = None,
        **versions: str,
    ) -> list[DecisionEvent] | IgnoredComparison:
        event = FactComparedV1.model_validate(
            {
                "fact_id": f"ar_00{newer}",
                "version": f"s{newer}",
                "relation": relation,
                "other_id": f"ar_00{older}",
                "other_version": f"s{older}",
                "lineage": MODEL,
                **versions,
            }
        )
        self.now += timedelta(minutes=1)
        comparison = Comparison(f"compared {newer} {older}", self.now, event)
        decided = merge_facts(OWNER, comparison, self.known.facts, self.known.wording, dedupe or Dedupe())
        if not isinstance(decided, IgnoredComparison):
            for _, each in decided:
                self.apply(each)
        return decided

    @property
    def said(self) -> dict[str, str]:
        return {known.id: known.fact.text for known in self.known.facts.list_live(self.now)}


def merged(decided: list[DecisionEvent] | IgnoredComparison) -> FactMergedV1:
    assert not isinstance(decided, IgnoredComparison)
    (name, event), (_, ended) = decided
    assert isinstance(event, FactMergedV1)
    assert isinstance(ended, FactForgottenV1)
    assert (name, ended.fact_id, ended.reason) == ("fact.merged", event.merged_id, "superseded")
    return event


@pytest.fixture
def user() -> MergedUser:
    user = MergedUser()
    user.save(1, "Мама живёт у моря", importance=4)
    user.save(2, "Мамин дом стоит на побережье", importance=7)
    return user


def test_of_facts_that_say_the_same_the_older_one_takes_the_newer_words(user: MergedUser) -> None:
    event = merged(user.compare(2, 1))
    assert user.said == {"ar_001": "Мамин дом стоит на побережье"}
    assert (event.fact.importance, event.former.text) == (7, "Мама живёт у моря")
    assert event.lineage == MODEL.model_copy(update={"sources": (1, 2), "conversation": "talk"})


def test_merge_keeps_older_words_where_duplicates_confirm(user: MergedUser) -> None:
    event = merged(user.compare(2, 1, dedupe=Dedupe(on_duplicate="confirm")))
    assert (event.fact.text, event.fact.importance) == ("Мама живёт у моря", 7)


@pytest.mark.parametrize(
    ("relation", "on_duplicate", "kept"),
    [("same", "rewrite", "Rex"), ("same", "confirm", "Fido"), ("update", "confirm", "Rex")],
)
def test_merged_fact_has_the_names_of_its_words(
    relation: Relation, on_duplicate: Literal["rewrite", "confirm"], kept: str
) -> None:
    user = MergedUser()
    user.save(1, "The dog is called Fido", names=("Fido",))
    user.save(2, "Takes Rex for a walk", names=("Rex",))

    fact = merged(user.compare(2, 1, relation, Dedupe(on_duplicate=on_duplicate))).fact

    assert kept in fact.text
    assert fact.names == (kept,)


def test_an_update_is_the_newer_fact_under_the_older_id() -> None:
    user = MergedUser()
    until = BEGIN + timedelta(days=30)
    user.save(1, "Works at a bakery", importance=8, tier="profile")
    user.save(2, "Runs a pizzeria", conversation="other", tier="working", kind="event", expires_at=until)
    event = merged(user.compare(2, 1, "update"))
    assert event.fact == Fact(
        text="Runs a pizzeria", kind="event", tier="working", importance=8, expires_at=until
    )
    assert event.lineage.conversation is None


@pytest.mark.parametrize(
    ("older", "newer", "kept"), [(5, 9, 9), (9, 5, 9), (None, 5, None), (5, None, None), (None, None, None)]
)
def test_merge_takes_the_later_expiry(older: int | None, newer: int | None, kept: int | None) -> None:
    def date(days: int | None) -> datetime | None:
        return None if days is None else BEGIN + timedelta(days=days)

    user = MergedUser()
    user.save(1, "Is on holiday", expires_at=date(older))
    user.save(2, "Has some days off", expires_at=date(newer))
    assert merged(user.compare(2, 1)).fact.expires_at == date(kept)


@pytest.mark.parametrize("relation", ["different", None])
def test_different_or_unanswered_pair_changes_nothing(
    user: MergedUser, relation: Literal["different"] | None
) -> None:
    assert isinstance(user.compare(2, 1, relation), IgnoredComparison)
    assert len(user.said) == 2


@pytest.mark.parametrize("changed", [1, 2])
def test_answer_about_former_words_is_ignored(user: MergedUser, changed: int) -> None:
    known = user.known.facts.facts[f"ar_00{changed}"].fact
    fact = known.model_copy(update={"text": "Мама переехала в горы"})
    user.apply(FactUpdatedV1(fact_id=f"ar_00{changed}", fact=fact, former=known), "by hand")
    assert user.compare(2, 1) == IgnoredComparison("a fact has changed or ended since the comparison")
    assert len(user.said) == 2


def test_a_change_that_leaves_the_words_as_they_were_does_not_matter(user: MergedUser) -> None:
    known = user.known.facts.facts["ar_001"].fact
    fact = known.model_copy(update={"importance": 9})
    user.apply(FactUpdatedV1(fact_id="ar_001", fact=fact, former=known), "by hand")
    assert merged(user.compare(2, 1)).fact.importance == 9


@pytest.mark.parametrize("ended", ["ar_001", "ar_002"])
def test_a_fact_that_has_ended_is_not_merged(user: MergedUser, ended: str) -> None:
    user.apply(FactForgottenV1(fact_id=ended), "forgotten")
    assert isinstance(user.compare(2, 1), IgnoredComparison)


def test_a_fact_whose_date_has_passed_is_not_merged() -> None:
    user = MergedUser()
    user.save(1, "Is on holiday", expires_at=BEGIN + timedelta(minutes=2))
    user.save(2, "Has some days off")
    assert isinstance(user.compare(2, 1), IgnoredComparison)
    user.apply(FactExpiredV1(fact_id="ar_001", expires_at=BEGIN), "expired")
    assert isinstance(user.compare(2, 1), IgnoredComparison)


def test_facts_with_different_numbers_are_not_the_same_whatever_a_model_says() -> None:
    user = MergedUser()
    user.save(1, "Рейс 10 июня")
    user.save(2, "Полёт 17 июня")
    assert user.compare(2, 1) == IgnoredComparison("the words of the facts contradict the comparison")
    assert merged(user.compare(2, 1, "update")).fact.text == "Полёт 17 июня"


@pytest.mark.parametrize("on_duplicate", ["rewrite", "confirm"])
def test_three_equal_facts_merge_into_one(
    user: MergedUser, on_duplicate: Literal["rewrite", "confirm"]
) -> None:
    dedupe = Dedupe(on_duplicate=on_duplicate)
    user.save(3, "Мама поселилась у воды")
    merged(user.compare(2, 1, dedupe=dedupe))
    answers = [user.compare(3, 1, dedupe=dedupe), user.compare(3, 2, dedupe=dedupe)]
    assert sum(isinstance(each, IgnoredComparison) for each in answers) == 1
    assert list(user.said) == ["ar_001"]
    assert user.known.facts.facts["ar_001"].lineage.sources == (1, 2, 3)


def test_repeated_comparison_changes_nothing(user: MergedUser) -> None:
    merged(user.compare(2, 1))
    assert isinstance(user.compare(2, 1), IgnoredComparison)


def test_interrupted_merge_is_completed(user: MergedUser) -> None:
    whole = MergedUser()
    for number, text in enumerate(user.said.values(), 1):
        whole.save(number, text)
    event = merged(whole.compare(2, 1))
    user.apply(event)
    assert len(user.said) == 2
    decided = user.compare(2, 1)
    assert not isinstance(decided, IgnoredComparison)
    assert [name for name, _ in decided] == ["fact.forgotten"]
    assert list(user.said) == ["ar_001"]


def test_a_fact_is_not_compared_with_itself(user: MergedUser) -> None:
    assert isinstance(user.compare(1, 1), IgnoredComparison)


def test_a_copy_of_an_earlier_event_does_not_bring_its_words_back(user: MergedUser) -> None:
    saved = FactSavedV1(
        fact_id="ar_001", fact=Fact(text="Мама живёт у моря"), decision=Decision(proposal_id="p1")
    )
    known = user.known.facts.facts["ar_001"].fact
    fact = known.model_copy(update={"text": "Мама переехала в горы"})
    user.apply(FactUpdatedV1(fact_id="ar_001", fact=fact, former=known), "by hand")
    user.apply(saved, "s1")
    user.apply(saved, "the same fact saved again")
    assert isinstance(user.compare(2, 1), IgnoredComparison)


def test_a_fact_of_which_a_part_has_no_source_names_no_sources(user: MergedUser) -> None:
    by_hand = Lineage(extractor="tool")
    user.apply(
        FactConfirmedV1(fact_id="ar_001", decision=Decision(proposal_id="p9"), lineage=by_hand), "confirmed"
    )
    assert merged(user.compare(2, 1)).lineage == MODEL
