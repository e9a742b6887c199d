"""Kind and tier of a fact: from the fields that a model sets, else from the words of the fact."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemon_consumers.dedupe.classification import classify_proposal
from mnemon_contracts.events.memory import Fact, FactProposedV1, Kind, Lineage, Tier
from mnemon_contracts.settings.groups import FactLimits, SettingsV1, TimeStamps

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAYS = 3
EXPIRING = SettingsV1(limits=FactLimits(working_days=DAYS))


def classified(text: str, **said: Any) -> Fact:
    return classify_proposal(FactProposedV1(text=text, **said), NOW, SettingsV1())


@pytest.mark.parametrize(
    ("text", "tier", "high", "low"),
    [
        ("Пользователь предпочитает русский.", "profile", True, False),
        ("Сейчас ставим simple-bot на сервер", "working", False, False),
        ("Обсуждали структуру памяти.", "archive", False, True),
    ],
)
def test_tier_and_importance_follow_from_words(text: str, tier: Tier, high: bool, low: bool) -> None:
    fact = classified(text)
    assert (fact.tier, fact.importance >= 8, fact.importance <= 3) == (tier, high, low)


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("Was married until 2018", "profile"),
        ("Worked at Google until March 2020", "archive"),
        ("Had a red bicycle till 2021-05-01", "archive"),
        ("До конца 2020 года учился в МГУ", "profile"),
        ("Жила в Самаре до 05.06.2019", "archive"),
        ("Worked at Google until the end of March 2020", "archive"),
        ("Had a red bicycle until May 5, 2020", "archive"),
        ("Ищет наушники до 2000 рублей", "working"),
        (f"Has a red bicycle by {'-' * 2_000}", "archive"),  # backtracking would take minutes
        ("Has a red bicycle until 2030", "working"),
        ("Has a red bicycle until 7 pm, built in 1980", "working"),
    ],
)
def test_what_ended_in_a_past_year_is_not_working(text: str, tier: Tier) -> None:
    assert classified(text).tier == tier


@pytest.mark.parametrize(
    "text",
    [
        "User's name is Marina",
        "Пользователя зовут Марина",
        "User speaks German",
        "User answers in English",
        "Говорит на английском языке",
        "Prefers tea to coffee",
        "Любит горький шоколад",
        "Не любит холодную погоду",
        "Works as a nurse in a hospital",
        "Is a Python developer",
        "Работает архитектором",
        "Работаю Python разработчиком",
        "User's wife is called Anna",
        "У пользователя двое детей",
        "Его сестра учится в Казани",
        "Lives in Berlin",
        "Живу в Москве",
        "Переехал в Санкт-Петербург",
        "Allergic to peanuts",
        "У пользователя диабет второго типа",
        "Сейчас живёт в Казани",
        "Currently lives in Porto",
        "Сейчас работает врачом",
    ],
)
def test_lasting_statement_is_profile(text: str) -> None:
    fact = classified(text)
    assert (fact.tier, fact.expires_at) == ("profile", None)


@pytest.mark.parametrize(
    "text",
    [
        "User is working on a thesis",
        "Currently reading about Rust",
        "Has to finish the report by tomorrow",
        "На этой неделе готовится к экзамену",
        "Сейчас читает про базы данных",
        "Работает над новым проектом",
        "Завтра едет к врачу",
    ],
)
def test_temporary_statement_is_working_and_expires_by_setting(text: str) -> None:
    fact = classified(text)
    assert (fact.tier, fact.expires_at) == ("working", None)
    assert classify_proposal(FactProposedV1(text=text), NOW, EXPIRING).expires_at == NOW + timedelta(
        days=DAYS
    )


@pytest.mark.parametrize(
    ("text", "expires_at"),
    [
        ("Is in Lisbon until Friday", datetime(2026, 11, 28, tzinfo=UTC)),
        ("Working on a thesis until June", datetime(2027, 7, 1, tzinfo=UTC)),
        ("В командировке до пятницы", datetime(2026, 11, 28, tzinfo=UTC)),
        ("Пишет диплом до июня", datetime(2027, 7, 1, tzinfo=UTC)),
    ],
)
def test_named_end_becomes_the_expiry(text: str, expires_at: datetime) -> None:
    fact = classified(text)
    assert (fact.tier, fact.expires_at) == ("working", expires_at)
    assert classify_proposal(FactProposedV1(text=text), NOW, EXPIRING).expires_at == expires_at
    caller = NOW + timedelta(days=1)
    assert classified(text, expires_at=caller).expires_at == caller
    assert classified(text, tier="profile").expires_at is None
    assert classified(text, lineage=Lineage(extractor="import")).expires_at is None
    east = SettingsV1(time_stamps=TimeStamps(zone="Etc/GMT-3"))
    shown = classify_proposal(FactProposedV1(text=text), NOW, east).expires_at
    assert shown == expires_at - timedelta(hours=3)


@pytest.mark.parametrize(
    "text",
    [
        "Is allergic to nuts, on vacation until Friday",
        "У него аллергия, в отпуске до пятницы",
        "Blood\ntype A, away until Friday",
    ],
)
def test_lasting_statement_has_no_expiry(text: str) -> None:
    assert classified(text).expires_at is None


@pytest.mark.parametrize(
    "text",
    [
        "Allergic to nuts, away until Friday",
        "Is a vegan, is working on a thesis",
        "User's name is Marina, she moves tomorrow",
        "Can't eat gluten, has a flight tonight",
        "Аллергия на орехи, в отпуске до пятницы",
        "Пользователя зовут Марина, завтра едет в Казань",
        "Диабет второго типа, на этой неделе в Казани",
    ],
)
@pytest.mark.parametrize("extractor", ["model", "import"])
def test_lasting_statement_with_a_passing_one_is_profile(text: str, extractor: str) -> None:
    proposed = FactProposedV1(text=text, lineage=Lineage(extractor=extractor))
    fact = classify_proposal(proposed, NOW, EXPIRING)
    assert (fact.tier, fact.expires_at) == ("profile", None)


def test_lasting_statement_with_a_given_end_is_working() -> None:
    end = NOW + timedelta(days=1)
    fact = classified("Allergic to nuts, away until Friday", expires_at=end)
    assert (fact.tier, fact.expires_at) == ("working", end)


@pytest.mark.parametrize("text", ["Is on antibiotics until Friday", "Пьёт антибиотики до пятницы"])
def test_treatment_with_an_end_is_working(text: str) -> None:
    fact = classified(text)
    assert (fact.tier, fact.expires_at) == ("working", datetime(2026, 11, 28, tzinfo=UTC))


@pytest.mark.parametrize(
    "text",
    ["Has a red bicycle", "Once broke an arm while skiing", "Купил красный велосипед", "Был в Италии в 2019"],
)
def test_other_statement_is_archive(text: str) -> None:
    fact = classified(text)
    assert (fact.tier, fact.importance, fact.expires_at) == ("archive", 5, None)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Prefers tea to coffee", "preference"),
        ("Любит горький шоколад", "preference"),
        ("Marina's wedding is in June", "event"),
        ("Встреча с врачом во вторник", "event"),
        ("День рождения пятого мая", "event"),
        ("We discussed the structure of memory", "conversation_insight"),
        ("Обсуждали структуру памяти", "conversation_insight"),
        ("Has two cats and a dog", "user_fact"),
        ("Работает архитектором", "user_fact"),
    ],
)
def test_kind_follows_from_words(text: str, kind: Kind) -> None:
    assert classified(text).kind == kind


@pytest.mark.parametrize(
    ("text", "importance"),
    [
        ("Allergic to peanuts", 9),
        ("Аллергия на арахис", 9),
        ("User's name is Marina", 9),
        ("Его зовут Пётр Иванов", 9),
        ("У него проблемы со здоровьем", 9),
        ("Это важно: звонить после десяти", 9),
        ("It is important to call after ten", 9),
        ("Discussed the weather for a while", 2),
        ("Поговорили о погоде и природе", 2),
        ("Has a red bicycle", 5),
    ],
)
def test_importance_follows_from_words(text: str, importance: int) -> None:
    assert classified(text).importance == importance


@pytest.mark.parametrize(
    "text",
    [
        "I can't eat gluten",
        "I can’t eat shellfish, sorry",
        "i cant eat gluten",
        "I can't have dairy",
        "She cannot have milk or eggs",
        "I'm not allowed to drink alcohol",
        "I can't tolerate lactose",
        "I don't eat gluten",
        "I'm gluten-free",
        "I'm on blood thinners",
        "I take metformin",
        "I have a pacemaker",
        "I have a heart condition",
        "I have high blood pressure",
        "I'm allergic to peanuts",
        "I am diabetic",
        "Мне нельзя глютен",
        "Мне нельзя есть орехи и молоко",
        "Кофе мне нельзя",
        "Не могу есть рыбу, аллергия",
        "Не переношу лактозу",
        "Не переносит лактозу",
        "Не ем глютен",
        "Пью кроверазжижающие препараты",
        "Принимаю таблетки от давления",
        "У меня кардиостимулятор",
        "У меня больное сердце",
        "Мне противопоказан аспирин",
    ],
)
def test_diets_and_illnesses_are_important_facts_of_the_profile(text: str) -> None:
    fact = classified(text)
    assert (fact.kind, fact.tier, fact.importance) == ("user_fact", "profile", 9)


@pytest.mark.parametrize(
    "text",
    [
        "I can't stand coriander",
        "I can’t stand milk",
        "I can't eat another bite",
        "I can't eat breakfast",
        "I can't eat fish on Fridays",
        "I can't have a meeting on Monday",
        "I can't have coffee after noon",
        "I can't have children over on weekdays",
        "I can't tolerate rudeness",
        "I don't eat meat",
        "I'm on the train",
        "I have a big heart",
        "I have a pacemaker poster",
        "My favourite bakery sells gluten-free bread",
        "Не переношу хамов",
        "Не переношу рыбу",
        "Не переносит ложь",
        "Не ем мясо",
        "Мне нельзя опаздывать",
        "Мне нельзя сладкое на ночь",
        "Не могу есть по утрам",
        "Пью кофе по утрам",
        "Принимаю гостей в субботу",
    ],
)
def test_habits_and_dislikes_are_no_facts_on_health(text: str) -> None:
    assert classified(text).importance == 5


@pytest.mark.parametrize("text", ["Doesn't eat meat", "I don’t eat meat", "Не ем мясо", "Не пьёт кофе"])
def test_food_that_a_person_leaves_is_a_preference(text: str) -> None:
    fact = classified(text)
    assert (fact.kind, fact.tier) == ("preference", "profile")


def test_kind_and_tier_of_the_model_win() -> None:
    until = NOW + timedelta(days=100)
    assert classified("Has a red bicycle", importance=10).importance == 10
    assert classified("Allergic to peanuts", importance=1).importance == 1
    assert classified("Currently reading about Rust", tier="archive").tier == "archive"
    assert classified("Currently reading about Rust", tier="archive").expires_at is None
    assert classified("Prefers tea to coffee", kind="user_fact").kind == "user_fact"
    assert classified("Black coffee only", kind="preference").tier == "profile"
    assert classified("Lives in Berlin", kind="conversation_insight").tier == "archive"
    assert classified("Has a red bicycle", tier="working").expires_at is None
    assert classified("Has a red bicycle", tier="working", expires_at=until).expires_at == until


@pytest.mark.parametrize("tier", ["profile", "archive"])
def test_date_makes_a_fact_working_unless_a_tier_is_named(tier: Tier) -> None:
    until = NOW + timedelta(days=100)
    assert classified("Lives in Berlin", expires_at=until).tier == "working"
    fact = classified("Lives in Berlin", expires_at=until, tier=tier)
    assert (fact.tier, fact.expires_at) == (tier, until)


def test_the_text_is_on_one_line() -> None:
    assert classified("  Has a\n red\t bicycle ").text == "Has a red bicycle"


def test_names_that_a_model_extracted_are_kept() -> None:
    assert classified("Rex is a Labrador", names=("Rex",)).names == ("Rex",)
    assert classified("Rex is a Labrador").names == ()
