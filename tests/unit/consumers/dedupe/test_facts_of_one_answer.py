"""Distinct facts of one answer of a model, decided one after another: no fact replaces another one."""

from datetime import UTC, datetime, timedelta

import pytest

from mnemon_consumers.dedupe.comparison import Likeness, NearestFact
from mnemon_consumers.dedupe.decide import Proposal, decide_proposal
from mnemon_consumers.dedupe.user_facts import UserFacts
from mnemon_contracts.events.memory import FactProposedV1, FactSavedV1, Lineage
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_infra.models.embedders.wordllama import load_word_similarity, load_wordllama

BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)

ENGLISH = """\
Is allergic to penicillin
The user's mother is allergic to penicillin
Is allergic to walnuts
Has a brother named Tom
Has a brother named Felix
Brother Tom lives in Leeds
Brother Felix lives in Leeds
Sister Emma lives in York
Works as a nurse
Husband works as a nurse
Takes the 7:40 train on Mondays
Takes the 8:10 train on Fridays
Flight to Rome on June 10
Flight from Rome on June 17
Keeps bees behind the house
Pays 900 pounds of rent for the house
Likes dark chocolate
Likes white wine
Plays the cello in an orchestra
Plays chess in a club
Reads detective novels on the train
Writes poems on the train
Has gym on Mondays
Has choir on Thursdays
Speaks fluent French
Is learning Polish
Visited Porto in 2019
Visited Lisbon in 2021
The cat is called Miso
The dog is called Biscuit
The cat is afraid of thunder
The dog is afraid of fireworks
Bought a bicycle in May
Sold a motorbike in May
Son is five years old
Daughter is eight years old
Son has asthma
Daughter has braces
Prefers tea to coffee in the morning
Prefers trains to planes for long trips
Father is a retired engineer
Mother teaches biology
Dentist appointment on March 3
Driving exam on March 10
Wants to learn to sail
Wants to visit Iceland
Hates cold weather
Hates loud music in cafes
Runs a small flower shop
Volunteers at an animal shelter
"""

RUSSIAN = """\
Аллергия на пенициллин
У мамы аллергия на пенициллин
Аллергия на грецкие орехи
Есть брат по имени Антон
Есть брат по имени Борис
Брат Антон живёт в Твери
Брат Борис живёт в Твери
Сестра Эмма живёт в Казани
Работает медсестрой в больнице
Муж работает медбратом в больнице
По понедельникам едет на электричке в 7:40
По пятницам едет на электричке в 8:10
Рейс в Рим 10 июня
Рейс из Рима 17 июня
Держит пчёл за домом
Платит за дом 40 тысяч в месяц
Любит тёмный шоколад
Любит белое вино
Играет на виолончели в оркестре
Играет в шахматы в клубе
Читает детективы в дороге
Пишет стихи в дороге
По понедельникам ходит в спортзал
По четвергам ходит на хор
Свободно говорит по-французски
Учит польский язык
В 2019 году был в Порту
В 2021 году был в Лиссабоне
Кошку зовут Мисо
Собаку зовут Бублик
Кошка боится грома
Собака боится салюта
В мае купил велосипед
В мае продал мотоцикл
Сыну пять лет
Дочери восемь лет
У сына астма
У дочери брекеты
Утром предпочитает чай кофе
В дальних поездках предпочитает поезд самолёту
Отец — инженер на пенсии
Мать преподаёт биологию
Запись к стоматологу 3 марта
Экзамен по вождению 10 марта
Хочет научиться ходить под парусом
Хочет побывать в Исландии
Ненавидит холодную погоду
Ненавидит громкую музыку в кафе
Держит небольшой цветочный магазин
Помогает в приюте для животных
"""


@pytest.mark.parametrize("answer", ["one answer", None])
@pytest.mark.parametrize("listed", [ENGLISH, RUSSIAN], ids=["english", "russian"])
async def test_fifty_distinct_facts_of_one_answer_are_kept(listed: str, answer: str | None) -> None:
    texts = listed.splitlines()
    model = load_wordllama()
    vectors = await model.embed(texts)
    likeness = Likeness(model.model, model.thresholds, load_word_similarity())
    known, kept = UserFacts(), dict[str, int]()
    for place, text in enumerate(texts):
        nearest = [
            NearestFact(fact_id, float(vectors[other] @ vectors[place])) for fact_id, other in kept.items()
        ]
        at = BEGIN + timedelta(milliseconds=place)
        event = FactProposedV1(text=text, lineage=Lineage(sources=(place + 1,), answer=answer))
        ((_, decided),) = decide_proposal(
            Proposal(f"p{place}", at, event), known, nearest, SettingsV1(), likeness
        )
        assert isinstance(decided, FactSavedV1), decided
        known.apply(decided, str(decided.id), at)
        kept[decided.fact_id] = place
    assert [each.fact.text for each in known.list_live(BEGIN + timedelta(hours=1))] == texts
    assert len(texts) == 50
