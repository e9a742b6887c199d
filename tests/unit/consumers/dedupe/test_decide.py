"""Decisions on proposals: examples, and each rule."""

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from mnemon_consumers.dedupe.comparison import Likeness, NearestFact
from mnemon_consumers.dedupe.decide import DecisionEvent, Proposal, decide_proposal
from mnemon_consumers.dedupe.user_facts import UserFacts
from mnemon_contracts.base import Event
from mnemon_contracts.events.memory import (
    FactConfirmedV1,
    FactForgottenV1,
    FactProposedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
    Lineage,
    Reason,
)
from mnemon_contracts.settings.groups import Dedupe, SettingsV1
from mnemon_infra.models.embedders.wordllama import load_word_similarity
from mnemon_infra.models.embedding import Thresholds

BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
TRANSFORMER = Thresholds(update=0.85, duplicate=0.95, relevant=0.6)
"""Thresholds for models that read a sentence as a whole."""

LIKENESS = Likeness("given/model", TRANSFORMER, load_word_similarity())

Decision = TypeVar("Decision", bound=Event)


class User:
    """One user, whose proposals are decided one after another, a minute apart."""

    def __init__(self, settings: SettingsV1 | None = None) -> None:
        self.known = UserFacts()
        self.settings = settings or SettingsV1()
        self.now = BEGIN
        self.proposals = 0

    def propose(
        self, text: str, nearest: tuple[str, float] | None = None, **said: Any
    ) -> list[DecisionEvent]:
        self.proposals += 1
        self.now += timedelta(minutes=1)
        proposal = Proposal(f"p{self.proposals}", self.now, FactProposedV1(text=text, **said))
        near = [NearestFact(*nearest)] if nearest else []
        decided = decide_proposal(proposal, self.known, near, self.settings, LIKENESS)
        assert decided == decide_proposal(proposal, self.known, near, self.settings, LIKENESS)
        for _, event in decided:
            self.known.apply(event, str(event.id), self.now)
        assert proposal.id in self.known.decided
        return decided

    def texts(self) -> dict[str, str]:
        return {known.id: known.fact.text for known in self.known.list_live(self.now)}


def only(decided: list[DecisionEvent], name: str, kind: type[Decision]) -> Decision:
    ((found, event),) = decided
    assert found == name
    assert isinstance(event, kind)
    return event


def saved(decided: list[DecisionEvent]) -> FactSavedV1:
    return only(decided, "fact.saved", FactSavedV1)


def updated(decided: list[DecisionEvent]) -> FactUpdatedV1:
    return only(decided, "fact.updated", FactUpdatedV1)


def confirmed(decided: list[DecisionEvent]) -> FactConfirmedV1:
    return only(decided, "fact.confirmed", FactConfirmedV1)


def refused(decided: list[DecisionEvent]) -> Reason:
    return only(decided, "fact.rejected", FactRejectedV1).reason


def test_moved_city_is_an_update_not_a_duplicate() -> None:
    user = User()
    first = saved(user.propose("Живу в Москве"))
    second = updated(user.propose("Переехал в Санкт-Петербург", (first.fact_id, 0.7)))
    assert second.former.text == "Живу в Москве"
    assert user.texts() == {first.fact_id: "Переехал в Санкт-Петербург"}


def test_refined_profession_is_an_update() -> None:
    user = User()
    first = saved(user.propose("Работаю программистом"))
    second = updated(user.propose("Работаю Python разработчиком", (first.fact_id, 0.9)))
    assert second.former.text == "Работаю программистом"
    assert user.texts() == {first.fact_id: "Работаю Python разработчиком"}


AS_DOCUMENT_001 = SettingsV1(
    dedupe=Dedupe(update_threshold=0.85, duplicate_threshold=0.95, require_similarity=True)
)


@pytest.mark.parametrize("near", [True, False])
def test_required_similarity_keeps_moved_city_apart(near: bool) -> None:
    user = User(AS_DOCUMENT_001)
    first = saved(user.propose("Живу в Москве"))
    second = saved(user.propose("Переехал в Санкт-Петербург", (first.fact_id, 0.7) if near else None))
    assert user.texts() == {first.fact_id: "Живу в Москве", second.fact_id: "Переехал в Санкт-Петербург"}
    assert second.decision.relation == "different", "no model is asked to make one of them"
    assert second.decision.evidence is not None
    assert second.decision.evidence.endswith("and the similarity of the facts is not above 0.85")


def test_required_similarity_rewrites_a_near_fact() -> None:
    user = User(AS_DOCUMENT_001)
    first = saved(user.propose("Работаю программистом", importance=7))
    second = updated(user.propose("Работаю Python разработчиком", (first.fact_id, 0.9), importance=3))
    assert (second.fact_id, second.fact.importance) == (first.fact_id, 7)


def test_the_same_in_other_words_is_one_fact_where_similarity_is_required() -> None:
    user = User(AS_DOCUMENT_001)
    first = saved(user.propose("User likes Python"))
    assert updated(user.propose("The user enjoys Python", (first.fact_id, 0.7))).fact_id == first.fact_id


def test_similarity_alone_replaces_no_fact_of_another_person() -> None:
    user = User(AS_DOCUMENT_001)
    first = saved(user.propose("Живёт в Москве с детства"))
    saved(user.propose("Мама живёт в Москве с детства", (first.fact_id, 0.96)))
    assert len(user.texts()) == 2


def test_without_an_embedding_model_no_similarity_is_required() -> None:
    user = User(AS_DOCUMENT_001)
    first = saved(user.propose("Живу в Москве"))
    proposal = Proposal("p9", user.now, FactProposedV1(text="Переехал в Санкт-Петербург"))
    decided = decide_proposal(proposal, user.known, [], user.settings, Likeness(words=load_word_similarity()))
    assert updated(decided).fact_id == first.fact_id


@pytest.mark.parametrize(
    ("similarity", "name"),
    [
        (1.0, "fact.updated"),
        (0.96, "fact.updated"),
        (0.95, "fact.updated"),
        (0.86, "fact.updated"),
        (0.84, "fact.saved"),
    ],
)
def test_thresholds_decide_by_similarity(similarity: float, name: str) -> None:
    user = User()
    first = saved(user.propose("Пишет на языке Python", importance=4))
    ((found, _),) = user.propose("Его стихия программный код", (first.fact_id, similarity), importance=7)
    assert found == name


def test_larger_importance_wins() -> None:
    user = User()
    first = saved(user.propose("Любит язык Python", importance=3))
    again = updated(user.propose("Обожает язык Python", (first.fact_id, 0.97), importance=8))
    assert again.fact.importance == 8
    lower = updated(user.propose("Язык Python ему нравится", (first.fact_id, 0.9), importance=2))
    assert lower.fact.importance == 8


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Любит чай", "too_short"),
        ("Что любит пользователь", "question"),
        ("npm install express", "command"),
        ("сделай промпт для картинки", "command"),
        ("Ключ sk-1234567890abcdef", "secret"),
    ],
)
def test_policy_refuses_with_a_reason(text: str, reason: Reason) -> None:
    user = User()
    assert refused(user.propose(text)) == reason
    assert user.texts() == {}


def test_fact_ids_are_short_and_per_tier() -> None:
    user = User()
    ids = [
        saved(user.propose(text)).fact_id
        for text in (
            "Пользователь предпочитает русский",
            "Сейчас ставим simple-bot",
            "Обсуждали структуру памяти",
        )
    ]
    assert ids == ["pf_001", "wk_001", "ar_001"]
    assert saved(user.propose("Has a red bicycle")).fact_id == "ar_002"


def test_contained_words_are_a_duplicate_in_either_direction() -> None:
    user = User()
    first = saved(user.propose("Пользователь любит зелёный чай"))
    assert confirmed(user.propose("любит зеленый ЧАЙ!")).fact_id == first.fact_id
    assert confirmed(user.propose("Пользователь любит зелёный чай.")).fact_id == first.fact_id
    longer = updated(user.propose("Пользователь любит зелёный чай с жасмином"))
    assert (longer.fact_id, longer.former.text) == (first.fact_id, "Пользователь любит зелёный чай")
    assert user.texts() == {first.fact_id: "Пользователь любит зелёный чай с жасмином"}


def test_semantic_threshold_is_a_setting() -> None:
    user = User(SettingsV1(dedupe=Dedupe(update_threshold=0.9, duplicate_threshold=0.9)))
    first = saved(user.propose("Struggles with insomnia"))
    assert saved(user.propose("Tosses and turns for hours", (first.fact_id, 0.9))).fact_id == "ar_001"
    again = updated(user.propose("Lies awake and counts sheep", (first.fact_id, 0.91)))
    assert (again.decision.duplicate_threshold if again.decision else None) == 0.9


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("मेरी बेटी डॉक्टर है", "मेरा बेटा डॉक्टर है"),
        ("Favourite food is 🍕", "Favourite food is 🍔"),
        ("The rent is 500 €", "The rent is 500 $"),
        ("The freezer is at -18 degrees", "The freezer is at 18 degrees"),
        ("Mein Sohn geht nicht in die Schule", "Mein Sohn geht in die Schule"),
    ],
)
def test_vowel_signs_symbols_and_foreign_denials_make_another_fact(old: str, new: str) -> None:
    user = User()
    first, second = saved(user.propose(old)), saved(user.propose(new))
    assert user.texts() == {first.fact_id: old, second.fact_id: new}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("मेरी बेटी डॉक्टर है", "मेरी बेटी डॉक्टर है।"),
        ("İstanbul'da yaşıyorum", "istanbul'da yaşıyorum"),
        ("我最喜欢的水果是🍎", "我最喜欢的水果是 🍎。"),
        ("Writes C++ (at work)", "writes c++ at work"),
    ],
)
def test_the_same_words_in_other_case_and_punctuation_are_confirmed(old: str, new: str) -> None:
    user = User()
    first = saved(user.propose(old))
    assert confirmed(user.propose(new)).fact_id == first.fact_id


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User likes Java a lot", "User likes JavaScript a lot"),
        ("Writes programs in C", "Writes programs in C++"),
    ],
)
def test_partial_word_is_no_duplicate(old: str, new: str) -> None:
    user = User()
    saved(user.propose(old))
    saved(user.propose(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Больше не работает в Акме", "Работает в Акме"),
        ("No longer works at Acme", "Works at Acme"),
        ("Eats meat on Sundays", "User never eats meat on Sundays"),
    ],
)
def test_negated_statement_is_a_new_fact(old: str, new: str) -> None:
    user = User()
    first = saved(user.propose(old))
    assert updated(user.propose(new)).former.text == old
    assert user.texts() == {first.fact_id: new}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Is allergic to penicillin", "The user's mother is allergic to penicillin"),
        ("The user's mother is allergic to penicillin", "Is allergic to penicillin"),
        ("Works night shifts at a hospital", "The user's brother works night shifts at a hospital"),
        ("Emma is afraid of dogs", "Is afraid of dogs"),
        ("The user's mother lives in Tver", "The user's father lives in Tver"),
        ("Brother Tom plays the cello", "Brother Ben plays the cello"),
        ("Аллергия на пенициллин", "У мамы аллергия на пенициллин"),
        ("У мамы пользователя аллергия на пенициллин", "У пользователя аллергия на пенициллин"),
        ("Работает по ночам в больнице", "Брат пользователя работает по ночам в больнице"),
        ("Эмма боится собак", "Пользователь боится собак"),
        ("Мама живёт в Твери", "Папа живёт в Твери"),
        ("Брат Антон играет на виолончели", "Брат Борис играет на виолончели"),
    ],
)
@pytest.mark.parametrize("similarity", [0.87, 0.99])
def test_facts_about_different_people_are_both_kept(old: str, new: str, similarity: float) -> None:
    user = User()
    first = saved(user.propose(old, importance=9))
    second = saved(user.propose(new, (first.fact_id, similarity), importance=4))
    assert list(user.texts().values()) == [old, new]
    assert second.fact.importance == 4
    assert second.decision.evidence


@pytest.mark.parametrize(
    ("known", "proposed"),
    [
        ("Is allergic to nuts", "Sails on the lake every weekend"),
        ("Аллергия на орехи", "По выходным ходит под парусом"),
        ("Flight to Rome on June 10", "Flight from Rome on June 17"),
    ],
)
def test_an_unrelated_fact_that_a_model_says_is_replaced_is_kept(known: str, proposed: str) -> None:
    user = User()
    first = saved(user.propose(known, importance=9))
    second = saved(user.propose(proposed, (first.fact_id, 0.9), supersedes=first.fact_id, importance=4))
    assert list(user.texts().values()) == [known, proposed]
    assert second.fact.importance == 4
    assert "the proposal names a fact to replace" in (second.decision.evidence or "")


@pytest.mark.parametrize(
    ("old", "new"), [("Lives in Leeds", "Lives in York"), ("Живёт в Туле", "Живёт в Твери")]
)
def test_facts_of_one_answer_do_not_replace_each_other(old: str, new: str) -> None:
    user = User()
    first = saved(user.propose(old, lineage=Lineage(answer="answer 1")))
    second = saved(user.propose(new, lineage=Lineage(answer="answer 1")))
    assert second.decision.undecided == (first.fact_id,)
    third = updated(user.propose("Lives in Bath" if "Leeds" in old else "Живёт в Уфе у реки"))
    assert third.fact_id == first.fact_id


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Lives in Leeds", "Moved to Berlin in 2015"),
        ("Works at Spotify", "Started working at IBM in 2009"),
        ("Живёт в Казани", "В 2015 году переехал в Берлин"),
        ("Работает в Озоне", "В 2009 году устроился в Сбер"),
    ],
)
def test_event_of_a_past_year_does_not_replace_a_later_fact(old: str, new: str) -> None:
    user = User()
    first = saved(user.propose(old))
    second = saved(user.propose(new))

    assert second.decision is not None
    assert second.decision.undecided == (first.fact_id,)
    assert list(user.texts().values()) == [old, new]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Lives in Leeds", "Moved to Berlin in 2026"),
        ("Lives in Leeds", "Moved to Berlin last year (2015)"),
        ("Lives in Leeds", "Moved to Berlin yesterday (2015-03-02)"),
        ("Lives in Leeds", "Has lived in York since 2019"),
        ("Живёт в Казани", "В 2026 году переехал в Берлин"),
    ],
)
def test_event_of_this_year_or_of_the_time_of_its_words_replaces_the_older_fact(old: str, new: str) -> None:
    user = User()
    saved(user.propose(old))
    updated(user.propose(new))


def test_undecided_facts_are_kept_and_named() -> None:
    user = User()
    first = saved(user.propose("Takes the 7:40 train"))
    second = saved(user.propose("Takes the 8:10 train", (first.fact_id, 0.98)))
    assert second.decision.undecided == (first.fact_id,)
    assert list(user.texts().values()) == ["Takes the 7:40 train", "Takes the 8:10 train"]


def test_duplicate_policy_confirm_keeps_older_words() -> None:
    user = User(SettingsV1(dedupe=Dedupe(on_duplicate="confirm")))
    first = saved(user.propose("Likes to ride a bicycle"))
    again = confirmed(user.propose("Enjoys cycling very much", (first.fact_id, 0.96)))
    assert again.decision.similarity == 0.96
    updated(user.propose("Enjoys cycling in the hills", (first.fact_id, 0.9)))


def test_duplicate_updates_other_fields() -> None:
    user = User()
    first = saved(user.propose("Has a red bicycle"))
    raised = updated(user.propose("Has a red bicycle", importance=9, tier="profile"))
    assert (raised.fact_id, raised.fact.importance, raised.fact.tier) == (first.fact_id, 9, "profile")
    assert raised.fact.text == "Has a red bicycle"
    confirmed(user.propose("Has a red bicycle", importance=2))


def test_decision_names_its_evidence() -> None:
    user = User()
    lineage = Lineage(sources=(3, 4), extractor="tool")
    first = saved(user.propose("Has a red bicycle", lineage=lineage))
    assert (first.lineage, first.id) == (lineage, "dedupe:p1")
    by = saved(user.propose("Plays chess every week", (first.fact_id, 0.3), lineage=lineage)).decision
    assert (by.proposal_id, by.nearest, by.similarity) == ("p2", first.fact_id, 0.3)
    assert (by.update_threshold, by.duplicate_threshold, by.embedding_model) == (0.85, 0.95, "given/model")
    in_words = confirmed(user.propose("Has a red bicycle", lineage=lineage))
    assert (in_words.decision.nearest, in_words.decision.similarity) == (first.fact_id, None)
    assert in_words.lineage == lineage


def test_without_an_embedder_words_decide() -> None:
    known, settings = UserFacts(), SettingsV1()
    proposal = Proposal("p1", BEGIN, FactProposedV1(text="Has a red bicycle"))
    by = saved(decide_proposal(proposal, known, [], settings, Likeness())).decision
    assert (by.nearest, by.update_threshold, by.embedding_model) == (None, None, None)


def test_removed_nearest_fact_is_no_match() -> None:
    user = User()
    first = saved(user.propose("Has a red bicycle"))
    user.known.apply(FactForgottenV1(fact_id=first.fact_id), "gone", user.now)
    by = saved(user.propose("Owns a red bicycle", (first.fact_id, 0.99))).decision
    assert (by.nearest, by.similarity) == (None, None)


def test_expired_proposal_is_refused_and_expired_fact_is_no_match() -> None:
    user = User()
    assert refused(user.propose("Is in Lisbon for a talk", expires_at=BEGIN)) == "expired"
    soon = BEGIN + timedelta(minutes=3)
    first = saved(user.propose("Is in Lisbon for a talk", expires_at=soon))
    again = saved(user.propose("Is in Lisbon for a talk", (first.fact_id, 1.0)))
    assert (first.fact_id, again.fact_id) == ("wk_001", "ar_001")


def test_a_rewritten_fact_keeps_id_tier_kind_and_date_unless_others_are_named() -> None:
    user = User()
    until, later = BEGIN + timedelta(days=3), BEGIN + timedelta(days=9)
    first = saved(user.propose("Is in Lisbon for a talk", expires_at=until, kind="event"))
    same = updated(user.propose("Is in Lisbon for a talk on bees", ("wk_001", 0.96))).fact
    assert (same.tier, same.kind, same.expires_at) == ("working", "event", until)
    moved = updated(
        user.propose("Is in Lisbon and Porto for talks on bees", ("wk_001", 0.9), expires_at=later)
    ).fact
    assert (moved.tier, moved.expires_at) == ("working", later)
    kept = updated(
        user.propose("Is in Lisbon and Porto for talks and tours on bees", ("wk_001", 0.9), tier="archive")
    )
    assert (kept.fact_id, kept.fact.tier, kept.fact.expires_at) == (first.fact_id, "archive", None)
    back = updated(
        user.propose(
            "Is in Lisbon and Porto for talks, tours, rest and bees", ("wk_001", 0.9), tier="working"
        )
    ).fact
    assert back.expires_at is None


def test_supersedes_replaces_the_named_fact() -> None:
    user = User()
    first = saved(user.propose("Lives in Berlin", importance=7))
    lineage = Lineage(sources=(9,))
    replaced = updated(user.propose("Moved to Porto", supersedes=first.fact_id, lineage=lineage))
    assert (replaced.fact_id, replaced.former.text, replaced.lineage) == (
        "pf_001",
        "Lives in Berlin",
        lineage,
    )
    assert replaced.fact.importance == 7
    assert user.texts() == {"pf_001": "Moved to Porto"}
    assert (
        saved(user.propose("Plays chess well", supersedes="pf_009")).fact_id == "ar_001"
    )  # "pf_009" does not exist


def test_supersedes_keeps_a_fact_that_says_more_than_the_proposal() -> None:
    user = User()
    first = saved(user.propose("Lives in York and is allergic to nuts"))
    confirmed(user.propose("Lives in York", supersedes=first.fact_id))
    assert user.texts() == {first.fact_id: "Lives in York and is allergic to nuts"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Works as a barista but is training to be a nurse", "No longer works as a barista"),
        ("Lives in Leeds and is allergic to nuts", "Lives in York"),
        ("Работает бариста, а учится на медсестру", "Больше не работает бариста"),
    ],
)
def test_supersedes_keeps_a_fact_that_also_says_something_else(old: str, new: str) -> None:
    user = User()
    first = saved(user.propose(old))
    second = saved(user.propose(new, supersedes=first.fact_id))
    assert "the older fact also says something else" in (second.decision.evidence or "")
    assert user.texts() == {first.fact_id: old, second.fact_id: new}


def test_a_fact_superseded_by_its_own_words_is_said_again() -> None:
    user = User()
    first = saved(user.propose("Lives in Porto"))
    (again,) = user.propose("lives in Porto", supersedes=first.fact_id)
    assert again[0] in ("fact.confirmed", "fact.updated")
    assert [fact.id for fact in user.known.list_live(user.now)] == [first.fact_id]


def test_fact_superseded_by_a_known_one_is_forgotten() -> None:
    user = User()
    saved(user.propose("Lives in Berlin", lineage=Lineage(answer="answer 1")))
    saved(user.propose("Lives in Porto now", lineage=Lineage(answer="answer 1")))
    forgotten, again = user.propose("Lives in Porto now", supersedes="pf_001")
    assert forgotten[1] == FactForgottenV1(id="supersede:p3:pf_001", fact_id="pf_001", reason="superseded")
    assert again[0] == "fact.confirmed"
    assert user.texts() == {"pf_002": "Lives in Porto now"}


def test_an_id_that_would_be_too_long_is_a_digest() -> None:
    proposal = Proposal("п" * 127, BEGIN, FactProposedV1(text="Has a red bicycle"))
    event = saved(decide_proposal(proposal, UserFacts(), [], SettingsV1(), LIKENESS))
    assert event.id is not None
    assert len(event.id.encode()) <= 255
    other = Proposal("р" * 127, BEGIN, FactProposedV1(text="Has a red bicycle"))
    assert saved(decide_proposal(other, UserFacts(), [], SettingsV1(), LIKENESS)).id != event.id
