"""Facts that the `offline` model finds, compared with known facts: new, known already, or superseding one."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemon_consumers.extract.prompt import build_request
from mnemon_contracts.settings.language_models import Extraction
from mnemon_infra.models.language.offline.changes import remove_speaker
from mnemon_infra.models.language.offline.model import build_offline_model
from mnemon_infra.models.language.port import PromptFact, PromptMessage

SATURDAY = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)


async def found(texts: list[str], *known: str) -> list[dict[str, Any]]:
    said = [PromptMessage(number, "user", text, SATURDAY) for number, text in enumerate(texts, 1)]
    facts = [PromptFact(f"pf_{number:03}", text) for number, text in enumerate(known, 1)]
    answer = await build_offline_model().complete(build_request(said, facts, Extraction()))
    proposed: list[dict[str, Any]] = json.loads(answer.text)["facts"]
    return proposed


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("I live in Leeds", "I live in Leeds"),
        ("I like tea", "User: I like tea"),
        ("I live in Leeds", "User lives in Leeds with two cats"),
        ("I'm allergic to nuts", "Is allergic to nuts"),
        ("Я работаю врачом", "Работаю врачом в Казани"),
    ],
)
async def test_known_fact_is_not_proposed_again(text: str, known: str) -> None:
    assert await found([text], known) == []


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("I've moved to York", "I live in Leeds"),
        ("I live in York now", "User lives in Leeds"),
        ("Переехал в Тбилиси", "Живу в Казани"),
        ("Я теперь живу в Тбилиси", "Пользователь живёт в Казани"),
        ("I'm 35 years old", "Is 34 years old"),
        ("Мне 35 лет", "Пользователь: Мне 34 года"),
        ("We got married last week", "I'm single at the moment"),
        ("I'm getting divorced", "I'm married"),
        ("I'm divorced now", "I'm getting divorced"),
        ("Я развёлся", "Я развожусь"),
        ("I no longer eat meat", "Likes to eat meat with red wine"),
        ("I quit smoking last year", "User smokes, mostly at night"),
        ("Я больше не ем мясо", "Ест мясо каждый день"),
        ("I quit my job last week", "I work at Acme as an engineer"),
        ("I got a new job at Globex", "I work at Acme as an engineer"),
        ("I'm 32 years old", "I’m 31"),
        ("I’m 32 years old", "I’m 31 years old"),
        ("I've moved to York", "I’m living in Leeds"),
        ("We're not going to Lisbon after all", "We're flying to Lisbon on 29 December (2026-12-29)"),
        ("The Lisbon trip is cancelled", "We're going to Lisbon on 29 December (2026-12-29)"),
        ("My dentist appointment was cancelled", "I have a dentist appointment on Monday (2026-11-23)"),
        ("В Анапу не едем", "20 декабря (2026-12-20) едем в Анапу"),
        ("Поездку в Анапу отменили", "20 декабря (2026-12-20) едем в Анапу"),
        ("Мой рейс отменили", "У меня рейс 5 декабря (2026-12-05)"),
        ("I’ve moved to York", "I’ve moved to Leeds"),
    ],
)
async def test_changed_fact_supersedes_the_former_one(text: str, known: str) -> None:
    (only,) = await found([text], "Has a boat", known, "User's sister lives in Oslo")
    assert only["supersedes"] == "pf_002"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("My sister has moved to York", ["I live in Leeds"]),
        ("I live in York", ["My brother lives in Leeds"]),
        ("I live in York", ["I live in Leeds", "I live in Rome in winter"]),
        ("I don't like coffee", ["I like tea very much"]),
        ("I work for a school too", ["I work at Acme"]),
        ("I no longer eat peanuts", ["Tom’s allergic to peanuts"]),
        ("My exam was cancelled", ["I have an exam on Monday", "I have an exam on Friday"]),
        ("My exam was cancelled", ["I passed my exam in May"]),
        ("My dentist appointment was cancelled", ["I have an appointment at the bank on Monday"]),
        ("The Lisbon trip is cancelled", ["I love Lisbon", "We're going to Porto on 29 December"]),
        ("Мой экзамен отменили", ["У меня экзамен в пятницу", "У меня экзамен во вторник"]),
        ("Поездку в Анапу отменили", ["Люблю Анапу"]),
    ],
)
async def test_unclear_change_supersedes_nothing(text: str, known: list[str]) -> None:
    assert [fact["supersedes"] for fact in await found([text], *known)] == [None]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("I live in Riga", "My mother lives in Riga"),
        ("Я живу в Риге", "Моя мама живёт в Риге"),
        ("My mother lives in Riga", "I live with my cat near Riga"),
        ("I'm allergic to nuts", "Lotte is allergic to nuts"),
        ("I'm allergic to nuts", "My friend is allergic to nuts"),
        ("Мне нельзя молоко", "Сыну нельзя молоко"),
    ],
)
async def test_fact_about_another_person_makes_no_statement_known(text: str, known: str) -> None:
    assert [fact["text"] for fact in await found([text], known)] == [text]


def test_only_the_speaker_before_a_fact_is_removed() -> None:
    assert remove_speaker("User: Has a role named User: Admin") == "Has a role named User: Admin"
    assert remove_speaker("Ann: User: Admin is my role") == "Ann: User: Admin is my role"
    assert remove_speaker("Пользователь: Роль — Пользователь: Админ") == "Роль — Пользователь: Админ"


async def test_denied_statement_is_another_fact() -> None:
    assert len(await found(["I don't like mushrooms"], "I like mushrooms")) == 1


async def test_last_named_home_supersedes() -> None:
    facts = await found(["I live in Leeds", "Oh, I've moved to York", "I moved to York"])
    assert [fact["text"] for fact in facts] == ["I've moved to York"]
