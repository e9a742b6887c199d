"""Intent of a query: the people and periods that it names."""

from datetime import UTC, datetime, timedelta

import pytest

from mnemon_consumers.retrieve.search.fusion import QueryWords
from mnemon_consumers.retrieve.search.query.intent import (
    LOOKED_AT,
    OTHER_FORM_WEIGHT,
    QueryIntent,
    split_words,
)
from mnemon_consumers.retrieve.search.query.names import list_other_forms
from mnemon_consumers.retrieve.search.query.periods.period import QueryPeriod
from mnemon_consumers.retrieve.search.text_properties import describe_text

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def build_periods(*days: tuple[int | None, int, int | None]) -> list[QueryPeriod]:
    """Build periods from days, months and years. No day means the whole month, no year means each year."""
    periods = []
    for day, month, year in days:
        start = datetime(year or NOW.year, month, day or 1, tzinfo=UTC)
        end = start + timedelta(days=1) if day else datetime(start.year, month + 1, 1, tzinfo=UTC)
        periods.append(QueryPeriod(start, end, is_yearly=year is None))
    return periods


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("What happened on 8 May 2023?", [(8, 5, 2023)]),
        ("Who came on May 3, 2023?", [(3, 5, 2023)]),
        ("Who came on the 3rd of may?", [(3, 5, None)]),
        ("What did she buy in May 2023?", [(None, 5, 2023)]),
        ("what did she buy in march", [(None, 3, None)]),
        ("In May, or on 2 June?", [(None, 5, None), (2, 6, None)]),
        ("What may Anna like? They march on.", []),
        ("May I ask something?", []),
        ("Что было 8 мая 2023 года?", [(8, 5, 2023)]),
        ("Куда мы ездили в мае?", [(None, 5, None)]),
        ("Что купили в сентябре 2024?", [(None, 9, 2024)]),
        ("notes of 2023-05-08 and 09.11.2024", [(8, 5, 2023), (9, 11, 2024)]),
        ("My 12 cats and 3.5 kg of fish", []),
    ],
)
def test_dates_are_recognised(query: str, days: list[tuple[int | None, int, int | None]]) -> None:
    assert list(QueryIntent(query, NOW).periods) == build_periods(*days)


def test_periods_are_relative_to_now() -> None:
    (period,) = QueryIntent("What did I say yesterday?", NOW).periods

    assert period.start == datetime(2026, 11, 20, tzinfo=UTC)
    assert QueryIntent("What did I say yesterday?").periods == ()


@pytest.mark.parametrize(
    "query",
    [
        "What happened last week?",
        "what did we talk about yesterday",
        "What did Anna talk about last week?",
        "Anything new since Monday?",
        "What did you tell me on 8 May 2023?",
        "What did Anna say yesterday?",
        "What did Will say yesterday?",
        "What was I doing yesterday?",
        "What was going on last week?",
        "What happened on June 3rd?",
        "What did I write on the 3rd of May?",
        "What happened within the last two weeks?",
        "What happened from Monday until Wednesday?",
        "What did we discuss in May, or on 2 June?",
        "What happened in December?",
        "Who did I write to last week?",
        "What happened yesterday evening?",
        "How was my day yesterday?",
        "What did I say earlier today?",
        "Summarize last week",
        "Give me a summary of yesterday",
        "Recap the last three days",
        "Remind me what we said on Monday",
        "List everything we shared last week",
        "Show me the topics of last month",
        "What came up last week?",
        "What has changed since Monday?",
        "Have we ever spoken in March?",
        "Что вчера сказала Анна?",
        "Что было вчера?",
        "Что было 5-го мая?",
        "О чём мы говорили на прошлой неделе?",
        "О чём шла речь вчера вечером?",
        "что нового с понедельника",
        "Что я писала 8 мая?",
        "Напомни, что было вчера",
        "Расскажи мне о том, что было на прошлой неделе",
        "Чем я занималась вчера?",
        "О чём мы беседовали и болтали в марте и в апреле?",
        "Чем Анна делилась в понедельник?",
        "Что было в течение прошлой недели?",
        "Что было летом 2025-го?",
        "What did we do at Christmas?",
        "What happened on New Year's Eve?",
        "Что было на Новый год?",
        "What did Tomasz say last week?",
        "What have Priya and Arjun done since Monday?",
        "What did Mary Kowalska do yesterday?",
        "What's Momo been doing this week?",
        "Что Кьяра говорила на прошлой неделе?",
        "Чем вчера занималась Кьяра?",
    ],
)
def test_a_query_about_what_happened_in_a_period_has_no_topic(query: str) -> None:
    assert QueryIntent(query, NOW).is_about_period
    assert not QueryIntent(query).is_about_period


@pytest.mark.parametrize(
    "query",
    [
        "What happened to my dog last week?",
        "Who came in Paris in May 2023?",
        "What happened?",
        "What did I say about winter yesterday?",
        "What did June say yesterday?",
        "What did I say about the fall last week?",
        "What did we say about 1984 last week?",
        "What did I say about Friday last week?",
        "What did I say about Christmas yesterday?",
        "What did I say about January yesterday?",
        "What did Anna tell me about last winter?",
        "Что случилось с собакой вчера?",
        "Куда ездила Анна на прошлой неделе?",
        "О чём мы говорили?",
        "Что я говорила про зиму вчера?",
        "Что сказал Август вчера?",
        "Что мы говорили о прошлом лете?",
        "What did Tomasz buy last week?",
        "Did we discuss Stripe last week?",
        "WHAT DID TOMASZ BUY LAST WEEK?",
        "Что случилось в Битриксе вчера?",
        "Мы обсуждали Битрикс вчера?",
        "Что Кьяра купила вчера?",
    ],
)
def test_a_query_with_a_topic_is_not_about_its_period(query: str) -> None:
    assert not QueryIntent(query, NOW).is_about_period


@pytest.mark.parametrize(
    "query",
    [
        "What will happen this week?",
        "What shall we do today?",
        "What should I do this week?",
        "What must I do today?",
        "What do I plan this month?",
        "Which plans did I mention yesterday?",
        "What was planned yesterday?",
        "What are we planning this week?",
        "What am I doing this week?",
        "What is going on this week?",
        "Any upcoming events this month?",
        "What did we say about tomorrow on Monday?",
        "What happens next week?",
        "What are we doing at Easter?",
        "Что будет на этой неделе?",
        "Что я буду делать сегодня?",
        "Какие планы на этой неделе?",
        "Что я планирую в этом месяце?",
        "Что мы собираемся делать сегодня?",
        "Что предстоит на этой неделе?",
        "Что нам предстоит завтра?",
        "Что было на следующей неделе?",
        "Что мне надо сделать сегодня?",
        "Что нужно сделать сегодня?",
    ],
)
def test_a_query_about_plans_is_not_about_what_happened_in_a_period(query: str) -> None:
    assert QueryIntent(query, NOW).periods
    assert not QueryIntent(query, NOW).is_about_period


@pytest.mark.parametrize(
    "query",
    [
        "What did we discuss before last week?",
        "What happened after the weekend?",
        "What did we say until Monday?",
        "What was said till the 3rd of May?",
        "What did I do by Friday last week?",
        "What did we talk about up to yesterday?",
        "What happened earlier than last week?",
        "What happened prior to last week?",
        "Что было до прошлой недели?",
        "Что было после выходных?",
        "Что было раньше прошлой недели?",
        "Что случилось позже 5 мая?",
        "Что я сделала к пятнице?",
    ],
)
def test_a_query_about_the_time_around_a_period_is_not_about_the_period(query: str) -> None:
    assert QueryIntent(query, NOW).periods
    assert not QueryIntent(query, NOW).is_about_period


def test_names_are_found_outside_periods() -> None:
    assert QueryIntent("What did Anna say yesterday?", NOW).has_name
    assert QueryIntent("What did Tomasz say yesterday?", NOW).has_name
    assert not QueryIntent("What did we say in April?", NOW).has_name
    assert not QueryIntent("What did we say yesterday?", NOW).has_name
    assert not QueryIntent("What did I say yesterday?", NOW).has_name


@pytest.mark.parametrize(
    ("query", "searched"),
    [
        ("What did Anna say last week?", "What did Anna say"),
        ("What happened two weekends ago?", "What happened"),
        ("Что рассказывала Света в прошлом месяце?", "Что рассказывала Света"),
        ("What did Anna say last May?", "What did Anna say in May"),
    ],
)
def test_relative_times_are_left_out_on_request(query: str, searched: str) -> None:
    intent = QueryIntent(query, NOW)

    assert intent.terms == describe_text(query).terms
    assert intent.remove_relative_times().terms == describe_text(searched).terms
    assert intent.remove_relative_times().periods == intent.periods


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ("Where does Bob live?", "Robert"),
        ("Where does Robert live?", "Bob"),
        ("Is Liz at home?", "Elizabeth"),
        ("Who saw Bill?", "William"),
        ("Thomas called", "Tom"),
        ("Bob lives where?", "Robert"),
        ("Bill's dog", "William"),
        ("Michael called", "Mike"),
    ],
)
def test_other_forms_of_a_name_count_less_than_the_name(query: str, form: str) -> None:
    (term,) = describe_text(form).terms

    weights = dict(zip(*QueryIntent(query).words[:2], strict=True))

    assert weights[term] == OTHER_FORM_WEIGHT


def test_only_a_capitalised_name_has_other_forms() -> None:
    (term,) = describe_text("William").terms

    assert term in QueryIntent("Who saw Bill?").words.indices
    assert term not in QueryIntent("Who paid the bill?").words.indices


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ("Will it snow?", "William"),
        ("Did it rain? Will it snow?", "William"),
        ("Bill for the water", "William"),
        ("Mark my words", "Marcus"),
        ("What next? Mark my words", "Marcus"),
        ("WHO PAID THE BILL?", "William"),
    ],
)
def test_an_ordinary_word_that_may_begin_a_sentence_has_no_other_forms(query: str, form: str) -> None:
    (term,) = describe_text(form).terms

    assert term not in QueryIntent(query).words.indices


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("Andrew", "drew"),
        ("Marcus", "mark"),
        ("William", "bill"),
        ("William", "will"),
        ("Albert", "al"),
        ("Richard", "rich"),
        ("Adam", "ads"),
    ],
)
def test_a_form_that_is_an_ordinary_word_is_left_out(name: str, form: str) -> None:
    assert form not in list_other_forms(f"Where does {name} live?")


@pytest.mark.parametrize(
    ("query", "name", "named"),
    [
        ("What is Caroline's dog called?", "Caroline", True),
        ("what does anna petrova like?", "Anna Petrova", True),
        ("What does Anna like?", "Anna Petrova", True),
        ("Что Аня сказала о собаке Кати?", "Катя", True),
        ("Что подарили Ане?", "Аня", True),
        ("What does Anna like?", "Boris", False),
        ("What does Kate like?", "Katherine", True),
        ("Кто был с Сашей?", "Александр", True),
        ("Will it rain?", "Will", False),
        ("What?", "🙂", False),
    ],
)
def test_names_are_recognised(query: str, name: str, named: bool) -> None:
    assert (name in QueryIntent(query).find_names([name])) is named


def test_follow_up_names_the_people_and_periods_of_the_messages_before_it() -> None:
    before = ("Katya and Igor met in May 2023", "And what about Boris on 8 June 2023?")
    names = ["Катя", "Игорь", "Boris"]

    intent = QueryIntent("and where was it?", NOW, before)

    assert intent.find_names(names) == {"Boris"}
    assert list(intent.periods) == build_periods((8, 6, 2023))
    assert (
        QueryIntent("and where was he in May 2023?", NOW, before).periods
        == QueryIntent("in May 2023", NOW).periods
    )
    assert QueryIntent("and did Igor?", NOW, before).find_names(names) == {"Игорь"}


def test_query_that_stands_by_itself_ignores_the_messages_before_it() -> None:
    query = "Which colour has the bicycle of Igor?"
    before = ("Katya moved to Rome in May 2023",)

    intent = QueryIntent(query, NOW, before)

    assert (intent.antecedents, intent.dependence, intent.periods) == ((), 0.0, ())
    assert intent.find_names(["Katya", "Igor"]) == {"Igor"}
    assert intent.terms == QueryIntent(query).terms
    assert intent.resolved_text == query


def test_resolved_text_has_the_messages_in_their_order() -> None:
    intent = QueryIntent("And when?", preceding=("Where did Anna move?", "To Rome"))

    assert intent.resolved_text == "Where did Anna move?\nTo Rome\nAnd when?"


@pytest.mark.parametrize(
    ("query", "is_about_user", "is_about_assistant"),
    [
        ("What did I say about my dog?", True, False),
        ("What did you recommend?", False, True),
        ("Что ты мне советовал?", True, True),
        ("Как зовут собаку?", False, False),
    ],
)
def test_pronouns_name_speaker_and_assistant(
    query: str, is_about_user: bool, is_about_assistant: bool
) -> None:
    intent = QueryIntent(query)
    assert (intent.is_about_user, intent.is_about_assistant) == (is_about_user, is_about_assistant)


@pytest.mark.parametrize(
    ("query", "asks_for_time"),
    [
        ("When did she move?", True),
        ("How long have they known each other?", True),
        ("В каком году они переехали?", True),
        ("Когда день рождения?", True),
        ("Where does she live?", False),
        ("What does whenever mean?", False),
    ],
)
def test_question_about_a_time_is_recognised(query: str, asks_for_time: bool) -> None:
    assert QueryIntent(query).asks_for_time is asks_for_time


def test_message_intent_names_dates_and_people() -> None:
    assert describe_text("We went there last Friday.").tells_time
    assert describe_text("Мы были там в мае").tells_time
    assert describe_text("It was in 2019").tells_time
    assert not describe_text("It costs 20190 roubles").tells_time
    assert not describe_text("We may go there").tells_time
    assert describe_text("She stays till the 24th").tells_time
    assert describe_text("Приедет 21-го").tells_time
    assert describe_text("The train is at 9:40").tells_time
    assert not describe_text("Four days of 24 hours").tells_time

    assert describe_text("Your painting is so vivid!").speaks_of_others
    assert describe_text("Как ты это сделал?").speaks_of_others
    assert not describe_text("I painted it, as you know.").speaks_of_others
    assert not describe_text("It is so vivid!").speaks_of_others


def test_of_a_huge_text_only_the_beginning_is_looked_at() -> None:
    huge = "word " * (LOOKED_AT // 5) + "yesterday 2024 you"
    assert split_words(huge) == {"word"}
    assert not describe_text(huge).tells_time
    assert not describe_text(huge).speaks_of_others
    assert QueryIntent(huge, NOW).periods == ()
    assert QueryWords("yesterday").measure_share(huge) == 0.0
    assert QueryWords("yesterday").measure_share(f"yesterday {huge}") == 1.0
