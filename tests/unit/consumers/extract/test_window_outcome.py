"""Outcome of a window, by the answer of a model."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mnemon_consumers.extract.answer_parser import MOST_FACTS
from mnemon_consumers.extract.answers.window_outcome import AnsweringModel, WindowJudgement, judge_answer
from mnemon_consumers.extract.prompt import PROMPT_VERSION
from mnemon_consumers.extract.window_requests import WindowRequest
from mnemon_contracts.decode import find_contract, upcast_body
from mnemon_contracts.events.fact_comparison import FactComparedV1
from mnemon_contracts.events.memory import FactProposedV1, Lineage, ModelCalledV2, WindowAnsweredV1
from mnemon_contracts.fact_pairs import FactPair
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Extraction
from mnemon_contracts.subjects import parse_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.windows.window_repository import StoredWindow
from mnemon_infra.models.language.port import LineFailed, ModelAnswer, PromptFact, PromptMessage, Usage

WINDOW = StoredWindow("acme", "u1", "talk", 7, 9)
SAID = PromptMessage(7, "user", "Я люблю чай", datetime(2026, 3, 1, tzinfo=UTC))
QUESTION = WindowRequest(WINDOW, [SAID], [], SettingsV1(extraction=Extraction(attempts=2)))
ASKED = AnsweringModel("openai", "a-model", "b1")
USAGE = Usage(100, 40, 10)
GOOD = '{"facts": [{"text": "Пользователь любит чай", "sources": [1]}, {"text": "User likes green tea"}]}'


def after(failures: int, question: WindowRequest = QUESTION) -> WindowRequest:
    return replace(question, window=question.window._replace(attempts=failures))


def names(judged: WindowJudgement) -> list[str]:
    return [parse_subject(event.subject).name for event in judged.events]


def read(event: LogEvent) -> object:
    address = parse_subject(event.subject)
    return upcast_body(find_contract(address), address.version, event.body)


def test_facts_window_end_and_cost_form_one_group() -> None:
    judged = judge_answer(QUESTION, ModelAnswer(GOOD, USAGE), ASKED)
    assert judged.is_answered
    assert names(judged) == ["fact.proposed", "fact.proposed", "window.answered", "model.called"]
    assert read(judged.events[2]) == WindowAnsweredV1(
        conversation="talk", from_seq=7, to_seq=9, outcome="proposed", proposed=2, batch_id="b1"
    )
    called = read(judged.events[3])
    assert isinstance(called, ModelCalledV2)
    assert (called.tokens.input, called.tokens.cached, called.tokens.output) == (100, 40, 10)
    assert judge_answer(QUESTION, ModelAnswer(GOOD, USAGE), ASKED) == judged


def test_event_ids_follow_from_window_and_attempt() -> None:
    once = judge_answer(QUESTION, ModelAnswer(GOOD, USAGE), ASKED).events
    again = judge_answer(after(1), ModelAnswer('{"facts": []}', USAGE), replace(ASKED, batch_id=None)).events
    assert names(WindowJudgement(again)) == ["window.answered", "model.called"]
    assert again[0].id == once[2].id
    assert again[1].id != once[3].id


def test_window_of_removed_messages_gives_only_its_cost() -> None:
    judged = judge_answer(replace(QUESTION, messages=[]), ModelAnswer(GOOD, USAGE), ASKED)
    assert judged.is_answered
    assert names(judged) == ["window.answered", "model.called"]
    ended = read(judged.events[0])
    assert isinstance(ended, WindowAnsweredV1)
    assert ended.outcome == "gone"


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ModelAnswer("Sorry.", USAGE), "unreadable"),
        (ModelAnswer("[1, 2", USAGE, is_cut=True), "unreadable"),
        (LineFailed("HTTP 500"), "no_answer"),
    ],
)
def test_unusable_answer_is_retried_then_given_up(outcome: ModelAnswer | LineFailed, reason: str) -> None:
    first = judge_answer(QUESTION, outcome, ASKED)
    assert not first.is_answered
    assert first.error
    assert first.dead is None
    last = judge_answer(after(1), outcome, ASKED)
    paid = ["model.called"] if isinstance(outcome, ModelAnswer) else []
    assert names(first) == paid
    assert names(last) == ["window.answered", *paid]
    assert last.dead is not None
    assert last.dead.reason == reason
    ended = read(last.events[0])
    assert isinstance(ended, WindowAnsweredV1)
    assert (ended.outcome, ended.proposed) == ("dead", 0)


def test_repeatedly_truncated_answer_gives_its_whole_facts() -> None:
    cut = ModelAnswer(GOOD[:-20], USAGE, is_cut=True)
    assert not judge_answer(QUESTION, cut, ASKED).is_answered
    last = judge_answer(after(1), cut, ASKED)
    assert last.dead is None
    assert names(last) == ["fact.proposed", "window.answered", "model.called"]


def test_permanent_failure_is_not_retried() -> None:
    refused = LineFailed("too long", is_refused=True, usage=USAGE)
    judged = judge_answer(QUESTION, refused, replace(ASKED, batch_id=None))
    assert judged.is_answered
    assert judged.dead is not None
    assert (judged.dead.reason, judged.dead.error) == ("refused", "too long")
    assert names(judged) == ["window.answered", "model.called"]


@pytest.mark.parametrize("failures", [0, 1])
def test_a_refused_line_of_a_batch_is_asked_online_before_that_counts(failures: int) -> None:
    refused = LineFailed("HTTP 400", is_refused=True)
    assert judge_answer(after(failures), refused, ASKED) == WindowJudgement((), is_answered=False)


def test_a_refused_line_goes_to_another_batch_where_that_is_made_otherwise_and_online_in_the_end() -> None:
    refused = LineFailed("HTTP 400", is_refused=True, is_adapted=True)
    assert judge_answer(QUESTION, refused, ASKED) == WindowJudgement([], is_answered=False, error="HTTP 400")
    assert judge_answer(after(1), refused, ASKED) == WindowJudgement((), is_answered=False)


def test_refusal_is_retried_once_and_paid_twice() -> None:
    question = replace(QUESTION, settings=SettingsV1(extraction=Extraction(attempts=5)))
    refused = ModelAnswer("", USAGE, problem="the model refuses to answer the request", is_refused=True)
    first, last = judge_answer(question, refused, ASKED), judge_answer(after(1, question), refused, ASKED)
    assert (names(first), first.is_answered) == (["model.called"], False)
    assert names(last) == ["window.answered", "model.called"]
    assert last.dead is not None
    assert (last.dead.reason, last.dead.error) == ("refused", "the model refuses to answer the request")


def test_an_answer_without_a_text_is_given_up_with_its_problem() -> None:
    empty = ModelAnswer("", USAGE, problem="the answer has no message")
    assert names(judge_answer(QUESTION, empty, ASKED)) == ["model.called"]
    last = judge_answer(after(1), empty, ASKED).dead
    assert last is not None
    assert (last.reason, last.error) == ("unreadable", "the answer has no message")


def test_unprocessed_line_is_no_failure() -> None:
    assert judge_answer(after(1), LineFailed("expired", is_unasked=True), ASKED) == WindowJudgement(
        (), is_answered=False
    )


MOVED = PromptMessage(
    7, "user", "we moved from Leeds last week, I am allergic to nuts", datetime(2026, 3, 13, tzinfo=UTC)
)


def proposed(*facts: dict[str, object], known: Sequence[PromptFact] = ()) -> list[FactProposedV1]:
    question = replace(QUESTION, messages=[MOVED], known=known)
    judged = judge_answer(question, ModelAnswer(json.dumps({"facts": facts}), USAGE), ASKED)
    events = [read(event) for event in judged.events]
    return [event for event in events if isinstance(event, FactProposedV1)]


def test_a_fact_with_names_or_numbers_that_no_source_has_is_marked() -> None:
    known = [PromptFact("pf_001", "Lives in Leeds")]
    fact = {"importance": 9, "supersedes": "pf_001", "sources": [1]}
    true, false = proposed(
        {**fact, "text": "Moved from Leeds in March 2026"},
        {**fact, "text": "Lives in Bradford with 3 dogs"},
        known=known,
    )
    assert (true.lineage.unsupported, true.importance, true.supersedes) == (None, 9, "pf_001")
    assert false.lineage.unsupported == ("Bradford", "3")
    assert (false.importance, false.supersedes) == (5, None), "it takes no other fact's place"


def test_a_marked_fact_matters_no_more_than_usual_though_its_words_do() -> None:
    (fact,) = proposed({"text": "Emma is allergic to penicillin"})
    assert (fact.lineage.unsupported, fact.importance) == (("Emma",), 5)
    (fact,) = proposed({"text": "Emma drinks tea now and then", "importance": 2})
    assert fact.importance == 2


def test_known_facts_that_the_model_was_not_shown_support_nothing() -> None:
    settings = SettingsV1(extraction=Extraction(known_facts=1))
    known = [PromptFact("pf_001", "Is called Ann"), PromptFact("pf_002", "Has a sister named Emma")]
    question = replace(QUESTION, messages=[MOVED], known=known, settings=settings)
    answer = ModelAnswer(json.dumps({"facts": ["Ann moved", "Emma moved with the user"]}), USAGE)
    marks = [
        event.lineage.unsupported
        for event in map(read, judge_answer(question, answer, ASKED).events)
        if isinstance(event, FactProposedV1)
    ]
    assert marks == [None, ("Emma",)]


def test_only_facts_that_the_model_was_shown_are_replaced() -> None:
    settings = SettingsV1(extraction=Extraction(known_facts=1))
    known = [PromptFact(f"ar_00{number}", text) for number, text in enumerate(("Tea", "Leeds", "Dog", "Cat"))]
    pair = FactPair(fact_id="ar_002", version="s2", other_id="ar_001", other_version="s1")
    question = replace(QUESTION, messages=[MOVED], known=known, settings=settings, pairs=[pair])
    facts = [{"text": f"Moved {fact.text}", "supersedes": fact.id} for fact in known]
    judged = judge_answer(question, ModelAnswer(json.dumps({"facts": facts}), USAGE), ASKED)
    proposals = [event for event in map(read, judged.events) if isinstance(event, FactProposedV1)]
    assert [fact.supersedes for fact in proposals] == ["ar_000", "ar_001", "ar_002", None]


def test_facts_beyond_the_limit_are_counted_and_kept_in_a_letter() -> None:
    texts = [f"Has visited a very small town number {number}" for number in range(MOST_FACTS + 3)]
    secret = "The password for email is hunter2hunter2"
    answer = ModelAnswer(json.dumps({"facts": [*texts, secret, {"text": 7}]}), USAGE)
    judged = judge_answer(QUESTION, answer, ASKED)
    assert judged.is_answered
    (ended,) = [event for event in map(read, judged.events) if isinstance(event, WindowAnsweredV1)]
    assert (ended.outcome, ended.proposed) == ("proposed", MOST_FACTS)
    assert (ended.unusable, ended.beyond_limit) == (1, 4)
    assert judged.dead is not None
    assert judged.dead.reason == "too_many_facts"
    assert judged.kept == "\n".join(texts[MOST_FACTS:]), "but for the secret"


def test_answer_within_the_limit_counts_no_excess() -> None:
    (ended,) = [
        event
        for event in map(read, judge_answer(QUESTION, ModelAnswer(GOOD, USAGE), ASKED).events)
        if isinstance(event, WindowAnsweredV1)
    ]
    assert (ended.unusable, ended.beyond_limit) == (None, None)


PAIRS = [
    FactPair(fact_id=f"ar_00{number}", version=f"s{number}", other_id="ar_001", other_version="s1")
    for number in (2, 3)
]
WITH_PAIRS = replace(QUESTION, pairs=PAIRS)
ONE = '{"facts": [], "pairs": [{"newer": "ar_002", "older": "ar_001", "relation": "same"}]}'


def compared(judged: WindowJudgement) -> dict[str, str | None]:
    found = [read(event) for event in judged.events if parse_subject(event.subject).name == "fact.compared"]
    return {each.fact_id: each.relation for each in found if isinstance(each, FactComparedV1)}


def test_answers_about_pairs_go_with_the_window_and_say_who_was_asked() -> None:
    judged = judge_answer(WITH_PAIRS, ModelAnswer(ONE, USAGE), ASKED)
    assert names(judged) == ["window.answered", "fact.compared", "fact.compared", "model.called"]
    assert compared(judged) == {"ar_002": "same", "ar_003": None}
    event = read(judged.events[1])
    assert isinstance(event, FactComparedV1)
    assert event.lineage == Lineage(
        extractor="extract", prompt_version=PROMPT_VERSION, model="openai/a-model", batch_id="b1"
    )


def test_answer_about_pair_has_same_id_in_any_batch_and_window_has_its_own() -> None:
    one = judge_answer(WITH_PAIRS, ModelAnswer(ONE, USAGE), ASKED).events
    elsewhere = replace(WITH_PAIRS, window=WINDOW._replace(from_seq=20, to_seq=21))
    other = judge_answer(elsewhere, ModelAnswer(ONE, USAGE), replace(ASKED, batch_id="b2")).events
    assert one[1].id == other[1].id
    assert one[2].id != other[2].id
    changed = replace(WITH_PAIRS, pairs=[PAIRS[0].model_copy(update={"version": "u2"})])
    assert judge_answer(changed, ModelAnswer(ONE, USAGE), ASKED).events[1].id != one[1].id


@pytest.mark.parametrize("outcome", [ModelAnswer("Sorry.", USAGE), LineFailed("HTTP 500")])
def test_questions_are_counted_where_there_is_no_answer_at_all(outcome: ModelAnswer | LineFailed) -> None:
    assert compared(judge_answer(WITH_PAIRS, outcome, ASKED)) == {"ar_002": None, "ar_003": None}
    last = judge_answer(after(1, WITH_PAIRS), outcome, ASKED)
    assert compared(last) == {"ar_002": None, "ar_003": None}
    assert names(last)[0] == "window.answered"  # the window ends, with a dead letter


def test_unasked_pairs_are_not_counted() -> None:
    assert compared(judge_answer(WITH_PAIRS, LineFailed("expired", is_unasked=True), ASKED)) == {}
