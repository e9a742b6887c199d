"""Features of messages, computed from the query, the neighbours and the session of each message."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from mnemon_consumers.retrieve.search import term_statistics
from mnemon_consumers.retrieve.search.fusion import FusedCandidate
from mnemon_consumers.retrieve.search.messages.message_features import (
    MessageFeatures,
    extract_features,
    measure_informativeness,
)
from mnemon_consumers.retrieve.search.query.intent import QueryIntent
from mnemon_consumers.retrieve.search.term_statistics import NO_STATISTICS, SUFFICIENT_TEXTS, TermStatistics
from mnemon_contracts.events.chat import Role
from mnemon_infra.database.messages.lookup import Surroundings, VisibleMessage
from mnemon_infra.models.embedding import Sparse

BEGAN = datetime(2024, 5, 8, 12, tzinfo=UTC)


def said(
    seq: int,
    content: str = "something",
    *,
    name: str | None = None,
    role: Role = "user",
    conversation: str = "c",
    minutes: float | None = None,
) -> VisibleMessage:
    sent_at = BEGAN + timedelta(minutes=seq if minutes is None else minutes)
    return VisibleMessage(seq, f"e{seq}", role, content, name, sent_at, conversation)


def around(*messages: VisibleMessage, together: bool = True) -> Surroundings:
    following = {one.seq: other.seq for one, other in pairwise(messages)} if together else {}
    return Surroundings({each.seq: each for each in messages}, following)


def found(score: float, similarity: float | None = 0.5) -> FusedCandidate:
    return FusedCandidate({}, score, score, score, score, similarity)


def features(
    scores: Mapping[str, float],
    surroundings: Surroundings,
    query: str = "?",
    statistics: TermStatistics = NO_STATISTICS,
) -> dict[int, MessageFeatures]:
    candidates = {name: found(score) for name, score in scores.items()}
    rows = extract_features(candidates, surroundings, QueryIntent(query, BEGAN), statistics, {})
    return {message.seq: each for message, each in rows}


def test_a_statement_tells_more_than_a_question_a_short_word_or_an_answer_of_an_assistant() -> None:
    text = "We bought tickets to Lisbon"
    told = measure_informativeness(said(1, text))

    assert measure_informativeness(said(1, text * 20)) == 1 > told > 0
    assert measure_informativeness(said(1, f"{text}?")) < 0.6 * told
    assert measure_informativeness(said(1, "Ok")) < 0.5 * told
    assert measure_informativeness(said(1, text, role="assistant")) == told / 2
    assert measure_informativeness(said(1, text, role="assistant", name="Anna")) == told


def test_neighbours_share_the_score_and_distant_ones_less() -> None:
    rows = features({"e3": 1.0}, around(*map(said, range(1, 9))))

    near = {seq: each.neighbours for seq, each in rows.items()}
    assert near == {1: 0.25, 2: 0.5, 3: 0.0, 4: 0.5, 5: 0.25, 6: 0.125, 7: 0.0625}
    assert 8 not in near, "it shares no more than the session with the found message"


@pytest.mark.parametrize("content", ["", " \n"])
def test_message_without_words_is_no_hit(content: str) -> None:
    messages = around(said(1), said(2, content, role="tool"), said(3))
    assert list(features({"e1": 0.6}, messages)) == [1, 3]


def test_message_after_a_question_may_be_its_answer() -> None:
    messages = said(1), said(2, "And the dog, what is it called?"), said(3, "Rex."), said(4)
    rows = features({"e2": 1.0}, around(*messages))

    assert {seq: each.answer for seq, each in rows.items()} == {1: 0.0, 2: 0.0, 3: 1.0, 4: 0.0}


def test_nothing_is_shared_across_a_pause_or_between_messages_of_unknown_order() -> None:
    silent = around(said(1, minutes=0), said(2, "Is it?", minutes=1), said(3, minutes=600))
    assert {seq: each.neighbours for seq, each in features({"e2": 1.0}, silent).items()} == {1: 0.5, 2: 0.0}

    apart = features({"e1": 1.0}, around(said(1), said(2), together=False))
    assert {seq: each.neighbours for seq, each in apart.items()} == {1: 0.0}


def test_session_with_the_better_hits_counts_for_each_of_its_messages() -> None:
    messages = [said(1), said(2), said(3, conversation="other"), said(4, minutes=600)]
    rows = features({"e1": 0.8, "e2": 0.4, "e3": 0.5, "e4": 0.5}, around(*messages, together=False))

    assert rows[1].session == rows[2].session == 1.0
    assert rows[3].session == rows[4].session == pytest.approx(0.5)


@pytest.mark.parametrize("name", [None, "assistant", "Assistant"])
def test_chat_with_an_assistant_has_neither_sessions_nor_lengths(name: str | None) -> None:
    rows = features({"e1": 0.8, "e2": 0.4}, around(said(1), said(2, role="assistant", name=name)))
    assert [(each.session, each.length) for each in rows.values()] == [(0.0, 0.0), (0.0, 0.0)]


def test_persona_with_a_name_counts_as_a_person() -> None:
    rows = features({"e1": 0.8, "e2": 0.4}, around(said(1), said(2, role="assistant", name="Nora")))
    assert all(each.session and each.length for each in rows.values())


def test_coverage_weighs_rare_words_more() -> None:
    texts = ["the dog sleeps", "the dog eats", "a dog and a zeppelin"]
    messages = around(said(1, "My dog is here"), said(2, "A zeppelin!"), together=False)
    rows = features({"e1": 0.5, "e2": 0.5}, messages, "dog zeppelin", TermStatistics.from_texts(texts))

    assert rows[1].coverage + rows[2].coverage == pytest.approx(1.0)
    assert rows[2].coverage > 2 * rows[1].coverage


def test_novelty_of_a_word_falls_with_each_earlier_message_that_has_it() -> None:
    messages = [said(1, "A zeppelin!"), said(2, "zeppelin, zeppelin"), said(3, "My dog saw the zeppelin")]
    messages += [said(4, "zeppelin", conversation="d"), said(5, "the zeppelin")]
    rows = features({f"e{seq}": 0.5 for seq in range(1, 6)}, around(*messages), "dog zeppelin")

    assert [each.novelty for each in rows.values()] == pytest.approx(
        [1 / 2, 1 / 4, 1 / 2 + 1 / 6, 1 / 8, 1 / 2]
    )
    assert [each.coverage for each in rows.values()] == pytest.approx([1 / 2, 1 / 2, 1, 1 / 2, 1 / 2])


def test_novelty_counts_words_of_preceding_messages_less() -> None:
    follow_up = QueryIntent("Was it red?", BEGAN, ("The zeppelin is here",))
    messages = around(said(1, "zeppelin"), said(2, "red"), said(3, "red zeppelin"))
    rows = extract_features(
        dict.fromkeys(("e1", "e2", "e3"), found(0.5)), messages, follow_up, NO_STATISTICS, {}
    )

    zeppelin, red, both = (each.novelty for _, each in rows)
    assert 0 < zeppelin < red
    assert both == pytest.approx(zeppelin + red)


def test_novelty_does_not_count_messages_that_are_not_returned() -> None:
    messages = said(1, "a zeppelin"), said(2, "a zeppelin"), said(3, "a zeppelin"), said(4, "a zeppelin")
    rows = features({"e1": 0.5, "e2": 0.5, "e3": 0.5}, around(*messages, together=False), "dog zeppelin")
    assert [each.novelty for each in rows.values()] == pytest.approx([1 / 2, 1 / 4, 1 / 2])


def test_rank_by_cosine_counts_as_far_as_similarities_are_trusted() -> None:
    candidates = {"e1": found(0.9, 0.7)._replace(trust=0.1), "e2": found(0.2, 0.8)._replace(trust=0.1)}
    rows = extract_features(candidates, around(said(1), said(2)), QueryIntent("?"), NO_STATISTICS, {})
    assert [each.cosine_rank for _, each in rows] == pytest.approx([0.05, 0.1])


def test_ranks_by_words_and_by_cosine_count_found_messages_only() -> None:
    candidates = {"e1": found(0.9, 0.7), "e2": found(0.2, 0.8), "e3": found(0.0, None)}
    rows = extract_features(candidates, around(*map(said, range(1, 5))), QueryIntent("?"), NO_STATISTICS, {})

    assert [each.term_rank for _, each in rows] == [1.0, 0.5, 0.0, 0.0]
    assert [each.cosine_rank for _, each in rows] == [0.5, 1.0, 0.0, 0.0]


def test_words_of_preceding_messages_count_less_in_coverage() -> None:
    follow_up = QueryIntent("Was it red?", BEGAN, ("The zeppelin is here",))
    (row,) = extract_features({"e1": found(0.5)}, around(said(1, "zeppelin")), follow_up, NO_STATISTICS, {})
    assert (
        0 < row[1].coverage < features({"e1": 0.5}, around(said(1, "zeppelin")), "red zeppelin")[1].coverage
    )


def test_coverage_without_statistics_counts_words() -> None:
    rows = features({"e1": 0.5}, around(said(1, "Собаки лают")), "Где собака и кошка?")
    assert rows[1].coverage == pytest.approx(0.5)


def test_speaker_is_the_person_whom_the_query_names() -> None:
    messages = [said(1, name="Anna"), said(2, name="Boris"), said(3, "You did well!", name="Anna")]
    rows = features(dict.fromkeys(("e1", "e2", "e3"), 0.5), around(*messages), "What does Anna do?")

    assert [(each.speaker, each.speaker_on_others) for each in rows.values()] == [(1, 0), (0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("query", "speakers"),
    [
        ("What did I say?", [1, 0]),
        ("Что я говорил?", [1, 0]),
        ("What did you say?", [0, 1]),
        ("Что ты советовал?", [0, 1]),
        ("What was said?", [0, 0]),
    ],
)
def test_pronouns_mean_the_user_and_the_assistant(query: str, speakers: list[float]) -> None:
    messages = [said(1), said(2, role="assistant")]
    rows = features({"e1": 0.5, "e2": 0.6}, around(*messages, together=False), query)
    assert [each.speaker for each in rows.values()] == speakers


def test_date_in_the_query_and_time_in_the_text() -> None:
    messages = [said(1), said(2, "a thing, last week"), said(3, minutes=60 * 24 * 60)]
    scores = dict.fromkeys(("e1", "e2", "e3"), 0.5)
    rows = features(scores, around(*messages, together=False), "When was it, on 7 July?")

    assert [(round(each.date, 2), each.time) for each in rows.values()] == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("We went to Lisbon with the kids", 1),
        ("Мы с Рексом гуляли", 1),
        ("We missed you, Anna! You would love it", 0),
        ("It rained. Then I watched TV", 0),
        ("SO HAPPY FOR LUNA", 0),
        ("nothing of note", 0),
    ],
)
def test_message_names_others_than_the_speakers(content: str, named: float) -> None:
    messages = said(1, content, name="Boris Petrov"), said(2, name="Anna")
    assert features({"e1": 0.5}, around(*messages))[1].names == named


def test_names_do_not_count_in_a_chat_with_an_assistant() -> None:
    messages = said(1, "We went to Lisbon"), said(2, role="assistant")
    assert features({"e1": 0.5}, around(*messages))[1].names == 0


def test_message_without_a_cosine_has_the_lowest_one() -> None:
    candidates = {"e1": found(0.9, 0.7), "e2": found(0.2, 0.4), "e3": found(0.3, None)}
    messages = around(*map(said, range(1, 5)))
    rows = extract_features(candidates, messages, QueryIntent("?"), NO_STATISTICS, {})
    assert [each.cosine for _, each in rows] == [0.7, 0.4, 0.4, 0.4]


def test_match_of_tokens_is_taken_over_for_neighbours_too() -> None:
    messages = around(*map(said, range(1, 4)))
    rows = extract_features({"e2": found(0.9)}, messages, QueryIntent("?"), NO_STATISTICS, {1: 0.2, 2: 0.8})
    assert [each.tokens for _, each in rows] == [0.2, 0.8, 0.0]


def test_rank_by_tokens_halves_for_the_second_best() -> None:
    messages = around(*map(said, range(1, 4)))
    matches = {1: 0.2, 2: 0.8, 3: 0.4}
    rows = extract_features({"e2": found(0.9)}, messages, QueryIntent("?"), NO_STATISTICS, matches)
    assert [each.token_rank for _, each in rows] == [pytest.approx(1 / 3), 1.0, 0.5]


def test_passage_is_the_mean_match_of_messages_before_and_after_within_the_session() -> None:
    messages = [said(seq, minutes=seq if seq < 5 else 600) for seq in range(1, 6)]
    matches = {1: 0.1, 2: 0.2, 3: 0.6, 4: 0.9, 5: 1.0}
    rows = extract_features({"e3": found(0.9)}, around(*messages), QueryIntent("?"), NO_STATISTICS, matches)
    assert {message.seq: round(each.passage, 3) for message, each in rows} == {
        1: 0.15,
        2: 0.3,
        3: 0.45,
        4: 0.567,
    }


def test_statistics_of_texts_count_each_text_once() -> None:
    statistics = TermStatistics.from_texts(["dog dog dog", "dogs", "cat"])
    (dog,) = QueryIntent("dog").terms
    (absent,) = QueryIntent("zeppelin").terms

    assert statistics.weigh_terms([dog, absent]) == {
        dog: pytest.approx(np.log(1 + 1.5 / 2.5)),
        absent: pytest.approx(np.log(1 + 3.5 / 0.5)),
    }
    assert len(set(NO_STATISTICS.weigh_terms([dog, absent]).values())) == 1


def test_statistics_weigh_the_words_and_concepts_of_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_statistics, "SUFFICIENT_TEXTS", 10)
    texts = ["I work at an office"] * 3 + ["It rains"] * 7
    statistics = TermStatistics.from_texts(texts)
    job, *concepts = QueryIntent("job").words.indices

    weighed = statistics.weigh_query(Sparse([job, *concepts], [1.0, *[0.5] * len(concepts)]))

    assert concepts
    assert weighed.indices == [job, *concepts]
    assert weighed.has_rarity
    assert weighed.values[0] == pytest.approx(np.log(1 + 10.5 / 0.5))
    assert pytest.approx(0.5 * np.log(1 + 7.5 / 3.5)) in weighed.values[1:], "`office` shares a concept"


def test_statistics_of_few_texts_leave_rarity_to_the_engine() -> None:
    words = QueryIntent("job").words

    assert NO_STATISTICS.weigh_query(words) == words
    assert not TermStatistics.from_texts(["text"] * (SUFFICIENT_TEXTS - 1)).weigh_query(words).has_rarity
    assert TermStatistics.from_texts(["text"] * SUFFICIENT_TEXTS).weigh_query(words).has_rarity
