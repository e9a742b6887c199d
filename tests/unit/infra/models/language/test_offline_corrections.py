"""Corrections of earlier statements, such as "sorry, July, not June"."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemon_consumers.domain.alignment.relation import relate_facts
from mnemon_consumers.extract.prompt import build_request
from mnemon_contracts.settings.language_models import Extraction
from mnemon_infra.models.language.offline.model import build_offline_model
from mnemon_infra.models.language.port import PromptFact, PromptMessage

SATURDAY = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)
BEFORE = SATURDAY - timedelta(hours=1)

JUNE = "Our trip is in June (2027-06)"
JULY = "Our trip is in July (2027-07)"


async def found(*said: str | tuple[str, str], known: Sequence[PromptFact] = ()) -> list[dict[str, Any]]:
    """Return the facts that the `offline` model finds in messages.

    Args:
        said: texts of the user, texts of the assistant after the prefix "bot:", or pairs of speaker and text.
        known: facts that are known before the messages.
    """
    messages = [
        PromptMessage(number, "user", text[1], SATURDAY, text[0])
        if isinstance(text, tuple)
        else PromptMessage(
            number, "assistant" if text.startswith("bot:") else "user", text.removeprefix("bot:"), SATURDAY
        )
        for number, text in enumerate(said, 1)
    ]
    answer = await build_offline_model().complete(build_request(messages, known, Extraction()))
    facts: list[dict[str, Any]] = json.loads(answer.text)["facts"]
    return facts


@pytest.mark.parametrize(
    ("said", "correction", "fact"),
    [
        ("Our trip is in June.", "sorry, July not June", JULY),
        ("Our trip is in June.", "I mean July, not June", JULY),
        ("Our trip is in June.", "It's not June, it's July", JULY),
        ("Our trip is in June.", "Our trip is not in June but in July", JULY),
        ("Our trip is in June.", "I said June but I meant July", JULY),
        ("Our trip is in June.", "I meant July", JULY),
        ("My exam is on Monday", "actually it's Tuesday, not Monday", "My exam is on Tuesday (2026-11-24)"),
        (
            "I have an exam on Monday",
            "The exam is on Tuesday, not Monday",
            "I have an exam on Tuesday (2026-11-24)",
        ),
        ("My exam is tomorrow", "on Monday, not tomorrow", "My exam is on Monday (2026-11-23)"),
        (
            "I have an exam by tomorrow",
            "on Monday, not by tomorrow",
            "I have an exam on Monday (2026-11-23)",
        ),
        ("My exam is on Monday", "tomorrow, not Monday", "My exam is tomorrow (2026-11-22)"),
        ("My birthday is on May 5", "May 6, not May 5", "My birthday is on May 6"),
        ("I live in Leeds", "oops, York, not Leeds", "I live in York"),
        ("I live in Leeds", "I live in York, not in Leeds", "I live in York"),
        ("I have two cats", "three, not two", "I have three cats"),
        ("I'm a doctor", "sorry, an engineer, not a doctor", "I'm an engineer"),
        ("I'm allergic to nuts", "Sorry, I'm allergic to milk, not nuts", "I'm allergic to milk"),
        ("У нас отпуск в августе", "не в августе, а в июле", "У нас отпуск в июле (2027-07)"),
        ("У нас отпуск в августе", "точнее, в июле", "У нас отпуск в июле (2027-07)"),
        ("У нас отпуск в августе", "июль, а не август", "У нас отпуск в июле (2027-07)"),
        ("Мы едем в Сочи в июле", "Мы едем в Сочи не в июле, а в мае", "Мы едем в Сочи в мае (2027-05)"),
        ("В понедельник у меня экзамен", "вернее, во вторник", "Во вторник (2026-11-24) у меня экзамен"),
        (
            "В понедельник у меня экзамен",
            "вторник, а не понедельник",
            "Во вторник (2026-11-24) у меня экзамен",
        ),
        ("Живу в Казани", "извини, не в Казани, а в Самаре", "Живу в Самаре"),
        ("Живу в Самаре", "не в Самаре, а во Владимире", "Живу во Владимире"),
        ("Живу в Казани", "не Казань, а Самара", "Живу в Самаре"),
        ("Живу в Самаре", "Калуга, а не Самара", "Живу в Калуге"),
        ("Живу в Казани", "не Казань, а Владимир", "Живу во Владимире"),
        ("Я родом из Казани", "ой, не Казань, а Калуга", "Я родом из Калуги"),
        ("Переехал в Самару", "не Самара, а Пермь", "Переехал в Пермь"),
        ("Мы живём в Москве", "не Москва, а Баку", "Мы живём в Баку"),
        ("Живу в Казани", "не Казань, а Ярославль", "Живу в Ярославле"),
        ("Живу в России", "не Россия, а Армения", "Живу в Армении"),
        ("Я работаю врачом", "ошибся, не врач, а фельдшер", "Я работаю фельдшером"),
        ("У меня две кошки", "ошибся, три, а не две", "У меня три кошки"),
        ("Мне 34 года", "35, а не 34", "Пользователь: Мне 35 лет"),
        ("Я работаю врачом", "то есть фельдшером, а не врачом", "Я работаю фельдшером"),
        ("Мой день рождения 5 мая", "6 мая, а не 5 мая", "Мой день рождения 6 мая"),
    ],
)
async def test_correction_changes_the_statement(said: str, correction: str, fact: str) -> None:
    (only,) = await found(said, "bot:Noted!", correction)
    assert (only["text"], only["sources"]) == (fact, [1, 3])


@pytest.mark.parametrize(
    "said",
    [
        ("Our trip is in June", "not May but April"),
        ("Our trip is in June", "not only in June but also in July"),
        ("Our trip is in June", "July, not June?"),
        ("Our trip is in June", "maybe July, not June"),
        ("Our trip is in June", "he said July, not June"),
        ("Our trip is in June", '"July, not June"'),
        ("Our trip is in June", "“July, not June”"),
        ("У нас отпуск в августе", "«в июле, а не в августе»"),
        ("Our trip is in June", "If it was July, not June, we would save"),
        ("Our trip is in June", "not June"),
        ("Our trip is in June", "Mom wants a dress for June", "July, not June"),
        ("Our trip is in June", "bot:Do you want films about June?", "sorry, July, not June"),
        ("Our trip is in June", "bot:Which month is the best for Rome?", "I meant July"),
        ("My flight is on Friday", "bot:I will remind you on Friday.", "on Thursday, not Friday"),
        ("I have two cats", "bot:I ordered two bowls.", "three, not two"),
        ("I have two cats", "The ticket is three euros, not two"),
        ("I have two cats", "bot:How many tickets?", "three, not two"),
        ("I have two cats", "dogs, not cats"),
        ("I have one dog", "sorry, two, not one"),
        ("I live in Leeds", "Let's meet in York, not Leeds"),
        ("I live in Leeds", "She lives in York, not Leeds"),
        ("I live in Leeds", "I could not live in Leeds"),
        ("My name is Ann", "I'm not Ann"),
        ("My exam is on Monday", "Sunday is not Monday"),
        ("I moved from Leeds to York", "sorry, York, not Leeds"),
        ("I love pizza", "bot:Shall I order pizza?", "sorry, pasta, not pizza"),
        ("I love pizza", "actually, pasta, not pizza"),
        ("I have two cats", "bot:I'll order two bags.", "Make that three"),
        ("I have two cats", "bot:Food ordered.", "I meant four"),
        ("My flight is tomorrow", "bot:I booked a taxi for today.", "I meant Monday"),
        ("I live in Leeds. Book me a hotel.", "bot:Which city?", "York, not Leeds"),
        ("My wife is called Anna", "bot:What is your daughter's name?", "Ann, not Anna"),
        ("I don't like tea", "I like coffee, not tea"),
        ("I'm not allergic to peanuts", "I'm allergic to hazelnuts, not peanuts"),
        ("I no longer live in Leeds", "I live in York, not Leeds"),
        ("I quit my job at Google", "My job is at Apple, not Google"),
        ("My son and my daughter are 5", "My daughter is 6, not 5"),
        ("I live in Leeds with my wife", "My wife is in York, not Leeds"),
        ("I'm allergic to penicillin, my son too", "my son is allergic to amoxicillin, not penicillin"),
        ("I live with Max in Leeds", "Max is in York, not Leeds"),
        ("Я не ем мясо", "Я ем рыбу, а не мясо"),
        ("Я больше не живу в Туле", "Я живу в Казани, а не в Туле"),
        ("Я живу в Туле. Найди отель.", "bot:В каком городе?", "В Казани, не в Туле"),
        ("У нас отпуск в августе", "не только в августе, но и в июле"),
        ("У нас отпуск в августе", "может, не в августе, а в июле"),
        ("У нас отпуск в августе", "bot:Показать погоду в августе?", "в июле, а не в августе"),
        ("У меня две кошки", "ошибся, пять, а не две"),
        ("Меня зовут Аня", "Поэма Анны, а не Аня"),
        ("Живу в Казани", "не Казань, а Череповец"),
        ("Живу в Казани", "не Казань, а Химки"),
        ("Живу в Казани", "встретимся в Самаре, а не в Казани"),
    ],
)
async def test_doubtful_correction_changes_nothing(said: tuple[str, ...]) -> None:
    assert (await found(*said))[: len(await found(said[0]))] == await found(said[0])


async def test_wrong_value_in_two_statements_stays() -> None:
    told = await found("I live in Leeds", "My sister lives in Leeds", "sorry, York, not Leeds")
    assert [fact["text"] for fact in told] == ["I live in Leeds", "My sister lives in Leeds"]


async def test_preference_for_one_of_two_things_is_no_correction() -> None:
    told = await found("I drink coffee every day", "I like tea, not coffee")
    assert [fact["text"] for fact in told] == ["I drink coffee every day", "I like tea, not coffee"]


async def test_marked_correction_may_follow_words_of_the_assistant() -> None:
    told = await found(
        "Our trip is in June", "bot:June in Rome is lovely! Who comes?", "sorry, July, not June"
    )
    assert [(fact["text"], fact["sources"]) for fact in told] == [(JULY, [1, 3])]


async def test_corrected_correction_has_all_messages_as_sources() -> None:
    (only,) = await found("Our trip is in May", "sorry, June, not May", "oh no, July, not June")
    assert (only["text"], only["sources"]) == (JULY, [1, 2, 3])


async def test_correction_of_one_clause_leaves_the_others() -> None:
    told = await found("I'm Anna, I'm 31 and I live in Leeds", "sorry, York, not Leeds")
    assert [(fact["text"], fact["sources"]) for fact in told] == [
        ("User: I'm Anna", [1]),
        ("User: I'm 31", [1]),
        ("I live in York", [1, 2]),
    ]


@pytest.mark.parametrize(
    ("said", "correction", "others"),
    [
        (
            "My wife works at Google and I work at Apple",
            "I work at Meta, not Google",
            "My wife works at Google",
        ),
        (
            "Моя мама живёт в Туле, я живу в Омске",
            "Я живу в Казани, а не в Туле",
            "Моя мама живёт в Туле",
        ),
    ],
)
async def test_correction_changes_no_statement_about_another_person(
    said: str, correction: str, others: str
) -> None:
    assert others in [fact["text"] for fact in await found(said, correction)]


async def test_day_that_is_said_on_another_day_changes_nothing() -> None:
    messages = [
        PromptMessage(1, "user", "My exam is on Friday", SATURDAY),
        PromptMessage(2, "user", "tomorrow, not Friday", SATURDAY + timedelta(days=2)),
    ]
    answer = await build_offline_model().complete(build_request(messages, (), Extraction()))
    assert [fact["text"] for fact in json.loads(answer.text)["facts"]] == [
        "My exam is on Friday (2026-11-27)"
    ]


async def test_another_speaker_corrects_nothing() -> None:
    told = await found(("Ann", "Our trip is in June"), ("Bob", "July, not June"))
    assert [fact["text"] for fact in told] == [f"Ann: {JUNE}"]


@pytest.mark.parametrize(
    ("fact", "said", "corrected"),
    [
        (JUNE, "sorry, July, not June", JULY),
        (JUNE, "Our trip is in July, not June", JULY),
        ("User's trip to Rome is in June 2027", "July, not June", "User's trip to Rome is in July 2027"),
        ("У нас отпуск в августе (2027-08)", "не в августе, а в июле", "У нас отпуск в июле (2027-07)"),
        ("Пользователь: Мне 34 года", "35, а не 34", "Пользователь: Мне 35 лет"),
    ],
)
async def test_correction_at_the_beginning_of_a_window_replaces_the_known_fact(
    fact: str, said: str, corrected: str
) -> None:
    known = [PromptFact("pf_001", "Has a boat", BEFORE), PromptFact("pf_002", fact, BEFORE)]
    (only,) = await found(said, known=known)
    assert (only["text"], only["supersedes"], only["sources"]) == (corrected, "pf_002", [1])
    assert relate_facts(fact, corrected).is_related, "dedupe would keep both facts"


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ([PromptFact("pf_001", JUNE, SATURDAY - timedelta(days=2))], ["sorry, July, not June"]),
        ([PromptFact("pf_001", JUNE, None)], ["sorry, July, not June"]),
        ([PromptFact("pf_001", JUNE, BEFORE)], ["Hello", "sorry, July, not June"]),
        ([PromptFact("pf_001", JUNE, BEFORE)], ["bot:Paris is best in June", "July, not June"]),
        ([PromptFact("pf_001", JUNE, BEFORE)], ["I meant July"]),
        ([PromptFact("pf_001", "I live in Leeds", BEFORE)], ["bot:Where is the hotel?", "York, not Leeds"]),
        ([PromptFact("pf_001", "I'm not allergic to nuts", BEFORE)], ["milk, not nuts"]),
        ([PromptFact("pf_001", "I used to work at Google", BEFORE)], ["Apple, not Google"]),
        (
            [PromptFact("pf_001", JUNE, BEFORE), PromptFact("pf_002", "Born in June", BEFORE)],
            ["sorry, July, not June"],
        ),
        ([PromptFact("pf_001", "Trip to Rome (2026-11-22)", BEFORE)], ["Oslo, not Rome"]),
    ],
)
async def test_doubtful_correction_replaces_no_known_fact(known: list[PromptFact], said: list[str]) -> None:
    assert await found(*said, known=known) == []


async def test_correction_applies_beside_a_long_text_without_its_value() -> None:
    facts = await found("Our trip is in June.", "and so " * 200, "sorry, July not June")
    assert [fact["text"] for fact in facts] == [JULY]


async def test_long_text_with_the_wrong_value_leaves_a_correction_in_doubt() -> None:
    facts = await found("Our trip is in June.", "and so in june " * 100, "sorry, July not June")
    assert [fact["text"] for fact in facts] == [JUNE]
