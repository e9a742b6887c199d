"""Names and numbers of a fact that its source messages do not have."""

import json
from datetime import UTC, datetime

import pytest

from mnemon_consumers.extract.answers.grounding import find_unsupported_terms
from mnemon_contracts.events.chat import Role
from mnemon_infra.models.language.offline.model import build_offline_model
from mnemon_infra.models.language.port import ModelRequest, PromptFact, PromptMessage

FRIDAY = datetime(2026, 3, 13, 18, 2, tzinfo=UTC)


def spoken(*texts: str | tuple[Role, str], name: str | None = None) -> list[PromptMessage]:
    turns: list[tuple[Role, str]] = [("user", each) if isinstance(each, str) else each for each in texts]
    return [
        PromptMessage(number, role, text, FRIDAY, name if role == "user" else None)
        for number, (role, text) in enumerate(turns, 1)
    ]


def check(fact: str, *said: str | tuple[Role, str], sources: tuple[int, ...] = (1,)) -> list[str]:
    return find_unsupported_terms(fact, sources, spoken(*said), [])


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("my sister emma comes over", "The user's sister Emma visits them"),
        ("Emma's cat is ill", "Emma has an ill cat"),
        ("I moved to york", "Moved to York"),
        ("I come from Portugal", "The user is Portuguese"),
        ("I have two cats", "Has 2 cats"),
        ("I have 2 cats", "The user has two cats"),
        ("I have twenty-five hens", "Has 25 hens"),
        ("it costs 2,000 rubles", "The deposit is 2000 rubles"),
        ("we meet at 7:30 pm", "Meets at 19:30"),
        ("we meet at 6pm", "Meets at 18:00"),
        ("I was born in 1990", "Is 35 years old"),
        ("my sister comes over next saturday", "The user's sister visits on 2026-03-21"),
        ("I flew to Rome yesterday", "Flew to Rome on 2026-03-12"),
        ("I moved in last May", "Moved in in May 2025"),
        ("finally, the movers left", "Moved in March 2026"),
        ("my exam is on June 10", "Has an exam on 2026-06-10"),
        ("my exam is on 10.06.2026", "Has an exam on June 10, 2026"),
        ("two years ago I quit smoking", "Quit smoking in 2024"),
        ("I quit coffee last month", "I quit coffee last month (2026-02)"),
        ("my wedding is in June", "The wedding is in June (2026-06)"),
        ("два месяца назад переехал в Самару", "Два месяца назад (2026-01) переехал в Самару"),
        ("I'm 30", "Was born in 1996"),
        ("i love rostov-on-don", "Loves Rostov-on-Don"),
        ("i got new shoes", "Bought shoes"),
        ("живу в санкт-петербурге", "Живёт в Санкт-Петербурге"),
        ("the wedding is on the 17th", "Has a wedding on 2026-03-17"),
        ("ко мне приезжает сестра эмма", "К пользователю приезжает сестра Эмма"),
        ("живу в Твери", "Живёт в городе Тверь"),
        ("видел Павла вчера", "Павел — друг пользователя"),
        ("у меня две кошки", "У пользователя 2 кошки"),
        ("у меня 2 кошки", "У пользователя две кошки"),
        ("мне двадцать пять лет", "Пользователю 25 лет"),
        ("вчера взяла щенка", "12 марта 2026 года взяла щенка"),
        ("в следующую субботу приедет сестра", "Сестра приедет 2026-03-21"),
        ("экзамен 10 июня", "Экзамен 2026-06-10"),
        ("родился в 1990 году", "Пользователю 35 лет"),
        ("год назад бросил курить", "Бросил курить в 2025 году"),
        ("день рождения 14 апреля", "14 апреля у пользователя день рождения"),
        ("день рождения третьего мая", "День рождения 3 мая"),
        ("Люблю чай", "Пользователь любит чай"),
        # "patient" is no name, because it does not begin with a capital.
        ("i live in leeds", "patient lives in Leeds"),
    ],
)
def test_supported_fact_is_not_marked(said: str, fact: str) -> None:
    assert check(fact, said) == []


@pytest.mark.parametrize(
    ("said", "fact", "marked"),
    [
        ("my sister comes over", "The user's sister Emma visits them", ["Emma"]),
        ("she is allergic", "Emma is allergic to nuts", ["Emma"]),
        ("I moved last week", "Moved to York", ["York"]),
        ("I moved from Leeds to York", "Moved from Leeds to Bradford", ["Bradford"]),
        ("I have two cats", "Has 3 cats", ["3"]),
        ("I have two cats", "Has three cats", ["three"]),
        ("it costs 2,000 rubles", "The deposit is 5000 rubles", ["5000"]),
        ("we meet at 7:30 pm", "Meets at 20:30", ["20:30"]),
        ("my exam is on June 10", "Has an exam on 2026-06-17", ["2026-06-17"]),
        ("my exam is on June 10", "Has an exam on June 17", ["June", "17"]),
        ("I bought a bike", "Bought a bike in 2019", ["2019"]),
        ("I bought a bike", "Bought a bike on 2031-05-01", ["2031-05-01"]),
        ("приезжает сестра", "Приезжает сестра Эмма", ["Эмма"]),
        ("она в отъезде", "Эмма в отъезде", ["Эмма"]),
        ("переехал на той неделе", "Переехал в Тверь", ["Тверь"]),
        ("мама живёт в Твери", "Мама живёт в Казани", ["Казани"]),
        ("у меня две кошки", "У пользователя 3 кошки", ["3"]),
        ("у меня две кошки", "У пользователя три кошки", ["три"]),
        ("экзамен 10 июня", "Экзамен 17 июня", ["17", "июня"]),
        ("купил велосипед", "Купил велосипед в 2019 году", ["2019"]),
        ("мне двадцать пять лет", "Пользователю 35 лет", ["35"]),
    ],
)
def test_unsupported_fact_is_marked(said: str, fact: str, marked: list[str]) -> None:
    assert check(fact, said) == marked


@pytest.mark.parametrize(
    ("texts", "fact", "marked"),
    [
        (("My brother Tom lives in Leeds", "I like tea"), "Tom likes tea", ["Tom"]),
        (("Мой брат Вадим живёт в Твери", "Я люблю чай"), "Вадим любит чай", ["Вадим"]),
        # The pronoun refers to a person whom the other message names.
        (("My sister is called Emma", "she is allergic to nuts"), "Emma is allergic to nuts", []),
        (("Мою сестру зовут Эмма", "у неё аллергия на орехи"), "У Эммы аллергия на орехи", []),
    ],
)
def test_grounding_uses_only_named_messages(texts: tuple[str, ...], fact: str, marked: list[str]) -> None:
    assert check(fact, *texts, sources=(2,)) == marked


def test_grounding_without_named_messages_uses_all() -> None:
    assert check("Tom likes tea", "My brother is Tom", "He likes tea", sources=(1, 2)) == []


def test_a_relative_date_in_one_message_counts_beside_a_named_one_in_another() -> None:
    said = "My exam is on June 10", "My sister comes over next Saturday"
    assert check("The user's sister visits on 2026-03-21", *said, sources=(1, 2)) == []


@pytest.mark.parametrize(
    ("before", "after", "marked"),
    [(2995, 3000, []), (2996, 3000, ["Emma"]), (5000, 997, ["Emma"]), (5000, 996, [])],
    ids=["beginning", "after the beginning", "before the end", "end"],
)
def test_grounding_uses_only_the_text_that_the_model_is_shown(
    before: int, after: int, marked: list[str]
) -> None:
    message = f"{'so ' * 2000}"[:before] + " emma" + f"{' so' * 2000}"[:after]
    assert check("The user's sister Emma visits them", message) == marked


def test_grounding_uses_assistant_messages() -> None:
    said: tuple[str | tuple[Role, str], ...] = (
        "Как назвать щенка?",
        ("assistant", "Может, Бим?"),
        "Отлично!",
    )
    assert check("Щенка зовут Бим", *said, sources=(1, 3)) == []


def test_grounding_uses_speakers_and_known_facts() -> None:
    said = spoken("finally, the movers left", name="Ann")
    assert (
        find_unsupported_terms("Ann moved from Leeds", (1,), said, [PromptFact("pf_003", "Lives in Leeds")])
        == []
    )
    assert find_unsupported_terms("Ann moved from Leeds", (1,), spoken("finally"), []) == ["Ann", "Leeds"]


@pytest.mark.parametrize(
    "text",
    [
        "Hi! I'm Ann and I live in Leeds. I'm allergic to nuts. I have two dogs named Rex and Tom",
        "I'm flying to Rome tomorrow. Next week I have an exam on Friday. I'm 34 years old",
        "Привет! Меня зовут Оля, живу в Твери. У меня аллергия на орехи и две собаки, Рекс и Том",
        "Завтра лечу в Рим. На следующей неделе у меня экзамен в пятницу. Мне 34 года",
    ],
)
async def test_facts_by_the_rules_are_never_marked(text: str) -> None:
    said = spoken(text)
    answer = await build_offline_model().complete(ModelRequest("extract", "Find facts.", "...", said))
    facts = [fact["text"] for fact in json.loads(answer.text)["facts"]]
    assert facts
    assert {fact: marked for fact in facts if (marked := find_unsupported_terms(fact, (1,), said, []))} == {}
