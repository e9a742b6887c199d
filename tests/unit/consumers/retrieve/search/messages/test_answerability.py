"""Probability that the messages found answer a question."""

from collections.abc import Mapping, Sequence

import pytest

from mnemon_consumers.retrieve.search.messages import answerability
from mnemon_consumers.retrieve.search.messages.answerability import (
    Judgement,
    asks_for_answer,
    extract_answerability_features,
    extract_speaker_features,
    judge_messages,
    load_answerability_weights,
)
from mnemon_consumers.retrieve.search.messages.rerank import ScoredMessage, score_messages
from mnemon_consumers.retrieve.search.query.intent import QueryIntent
from mnemon_consumers.retrieve.search.term_statistics import TermStatistics
from mnemon_infra.database.messages.lookup import VisibleMessage
from mnemon_infra.models.embedders.wordllama import THRESHOLDS
from mnemon_infra.models.embedding import TRANSFORMER, Thresholds
from tests.unit.consumers.retrieve.search.messages.test_message_features import BEGAN, around, found, said


@pytest.fixture(autouse=True)
def _few_messages_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answerability, "LEAST_FOUND", 1)


STATISTICS = TermStatistics.from_texts([f"text {number}" for number in range(1_000)])


def score(
    query: str, similarities: Mapping[str, float], *messages: VisibleMessage, statistics: TermStatistics
) -> list[ScoredMessage]:
    candidates = {name: found(similarity, similarity) for name, similarity in similarities.items()}
    intent = QueryIntent(query, BEGAN)
    return score_messages(candidates, around(*messages, together=False), intent, statistics, {})


def judge(
    query: str,
    text: str,
    similarity: float = 0.3,
    *,
    thresholds: Thresholds | None = THRESHOLDS,
    statistics: TermStatistics = STATISTICS,
    preceding: tuple[str, ...] = (),
) -> Judgement | None:
    scored = score(query, {"e1": similarity}, said(1, text, name="Anna"), statistics=statistics)
    return judge_messages(scored, QueryIntent(query, BEGAN, preceding), statistics, thresholds)


def measure(query: str, text: str, similarity: float = 0.3) -> float:
    judgement = judge(query, text, similarity)
    assert judgement is not None
    return judgement.answerability


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("When did Anna buy the boat?", True),
        ("when did Anna buy the boat", True),
        ("Где Анна купила лодку?", True),
        ("boat Anna harbour", False),
        ("Tomorrow we take the boat to the harbour.", False),
        (f"{'We talked about the boat. ' * 30}Right?", False),
    ],
)
def test_key_words_statements_and_long_texts_are_no_questions(query: str, expected: bool) -> None:
    assert asks_for_answer(query) is expected


def test_more_words_and_a_higher_similarity_make_an_answer_more_probable() -> None:
    query = "Which colour does the boat have?"
    assert measure(query, "The boat got a new colour") > measure(query, "The boat leaks")
    assert measure(query, "The boat leaks", 0.6) > measure(query, "The boat leaks", 0.3)


def test_unknown_name_makes_an_answer_less_probable_and_a_speaker_or_a_month_does_not() -> None:
    text = "We painted the boat with Boris"
    known = measure("Did you paint the boat with Boris?", text)
    assert measure("Did you paint the boat with Zoltan?", text) < known / 2
    speaker = judge("What did the sailor Annie paint?", text)
    assert speaker is not None
    assert speaker.answerability > measure("What did the sailor Zoltan paint?", text)
    dated = measure("Did you paint the boat with Boris on May 3?", text)
    assert dated == pytest.approx(known, rel=0.2)


@pytest.mark.parametrize("speaker", ["Katherine", "Kate"])
def test_name_of_a_speaker_need_not_occur_in_the_messages(speaker: str) -> None:
    messages = said(1, "I live in Leeds", name=speaker), said(2, "Nice weather", name="Boris")

    def judge_place(query: str) -> Judgement:
        scored = score(query, {"e1": 0.15}, *messages, statistics=STATISTICS)
        judgement = judge_messages(scored, QueryIntent(query), STATISTICS, THRESHOLDS)
        assert judgement is not None
        return judgement

    known, unknown = judge_place("Where does Katherine live?"), judge_place("Where does Zoltan live?")
    assert known.answerability >= known.threshold
    assert unknown.answerability < unknown.threshold


def test_few_messages_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answerability, "LEAST_FOUND", 2)
    assert judge("Did you paint the boat with Zoltan?", "The boat leaks") is None


def test_what_another_speaker_said_does_not_answer_a_question_about_the_named_one() -> None:
    messages = said(1, "I sold my boat in the harbour", name="Boris"), said(2, "Nice weather", name="Anna")
    similarities = {"e1": 0.6, "e2": 0.1}
    intents = {name: QueryIntent(f"Where did {name} sell the boat?", BEGAN) for name in ("Anna", "Boris")}
    scored = {
        name: score(intent.text, similarities, *messages, statistics=STATISTICS)
        for name, intent in intents.items()
    }
    judged = {
        name: judge_messages(scored[name], intent, STATISTICS, THRESHOLDS) for name, intent in intents.items()
    }
    assert judged["Anna"]
    assert judged["Boris"]
    assert judged["Anna"].answerability < judged["Boris"].answerability

    addressed = said(1, "You sold your boat in the harbour", name="Boris"), messages[1]
    told = score(intents["Anna"].text, similarities, *addressed, statistics=STATISTICS)
    features = extract_speaker_features(told, intents["Anna"], frozenset({"Anna", "Boris"}))
    assert features is not None
    assert features.attribution > 0, "Boris tells what Anna did"


def test_speaker_counts_only_if_one_is_named_and_no_assistant_answers() -> None:
    messages = said(1, "I sold my boat", name="Boris"), said(2, "Nice weather", name="Anna")
    scored = score("boat", {"e1": 0.6, "e2": 0.1}, *messages, statistics=STATISTICS)

    def has_speaker(query: str, scored: Sequence[ScoredMessage]) -> bool:
        features = extract_answerability_features(scored, QueryIntent(query), STATISTICS)
        assert features is not None
        return features.speaker is not None

    assert has_speaker("Did Anna sell the boat?", scored)
    assert not has_speaker("Who sold the boat?", scored)
    assert not has_speaker("Did Anna and Boris sell the boat?", scored)
    reply = said(3, "I can help with the boat", role="assistant")
    scored = score("boat", {"e1": 0.6, "e3": 0.5}, *messages, reply, statistics=STATISTICS)
    assert not has_speaker("Did Anna sell the boat?", scored)


def test_only_questions_that_the_weights_fit_are_judged() -> None:
    query, text = "Which colour does the boat have?", "The train is late"
    assert judge(query, text)
    assert judge("colour boat", text) is None
    assert judge("What about the boat?", text) is None, "one word"
    assert judge("And which colour?", text, preceding=("The boat is painted",)) is None, "a follow-up"
    assert judge(query, text, thresholds=None) is None, "words only"
    assert judge(query, text, thresholds=TRANSFORMER) is None, "another embedding model"
    assert judge("Какого цвета была лодка?", text) is None, "wordllama does not know Russian"
    assert judge(query, "Поезд опоздал") is None, "nor the language of the messages"
    assert judge(query, text, statistics=TermStatistics.from_texts(["one text"])) is None
    assert judge_messages([], QueryIntent(query), STATISTICS, THRESHOLDS) is None


def test_hit_with_all_words_or_with_the_quoted_phrase_is_never_doubtful() -> None:
    judgement = judge('Who said "boats leak sometimes" about Zoltan and Xaver?', "The train is late", 0.1)
    assert judgement is not None
    assert judgement.answerability < judgement.threshold
    assert judgement.is_doubtful("The train is late")
    assert not judgement.is_doubtful("Well, Boats leak sometimes.")
    plain = judge("Which colour does the boat have?", "The train is late", 0.1)
    assert plain is not None
    assert plain.is_doubtful("The boat leaks")
    assert not plain.is_doubtful("The colours of boats")


def test_quoted_stop_words_and_parts_of_words_exempt_nothing() -> None:
    text = "The trains and the boats are late"
    for query in (
        'Who wrote "Xaver" and "Zoltan"?',
        'Which "X" and "Y" did Zoltan buy?',
        'Did Zoltan say "rain"?',
    ):
        judgement = judge(query, text, 0.1)
        assert judgement is not None
        assert judgement.is_doubtful(text), query


def test_message_that_repeats_the_question_does_not_answer_it() -> None:
    query = "Which colour does Zoltan's boat have?"
    asked, other = said(1, "which colour does Zoltan's boat have"), said(2, "The train is late")
    scored = score(query, {"e1": 1.0, "e2": 0.1}, asked, other, statistics=STATISTICS)
    judgement = judge_messages(scored, QueryIntent(query), STATISTICS, THRESHOLDS)
    assert judgement is not None
    assert judgement.is_doubtful("The train is late")
    alone = [each for each in scored if each.message is asked]
    assert judge_messages(alone, QueryIntent(query), STATISTICS, THRESHOLDS) is None


def test_fitted_weights_have_the_signs_of_their_reasons() -> None:
    weights = load_answerability_weights()
    assert min(weights.topic.similarity, weights.topic.score, weights.topic.coverage) > 0
    assert weights.topic.unknown_names < 0
    assert min(weights.speaker) > 0
