"""Facts that the `offline` model finds in people's statements, and texts that it leaves out."""

import json
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.domain.policy.refusal import find_refusal
from mnemon_consumers.extract.answer_parser import parse_answer
from mnemon_consumers.extract.prompt import build_request
from mnemon_contracts.settings.groups import Policy
from mnemon_contracts.settings.language_models import Extraction
from mnemon_infra.models import tokens
from mnemon_infra.models.language.offline.changes import is_about_user
from mnemon_infra.models.language.offline.model import build_offline_model
from mnemon_infra.models.language.offline.statements import find_statements
from mnemon_infra.models.language.port import ModelAnswer, PromptFact, PromptMessage

SATURDAY = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)


def spoken(*texts: str, at: datetime = SATURDAY) -> list[PromptMessage]:
    return [PromptMessage(10 * number, "user", text, at) for number, text in enumerate(texts, 1)]


async def answer(messages: Sequence[PromptMessage], known: Sequence[PromptFact] = ()) -> ModelAnswer:
    return await build_offline_model().complete(build_request(messages, known, Extraction()))


async def found(messages: Sequence[PromptMessage]) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = json.loads((await answer(messages)).text)["facts"]
    return facts


async def texts(*said: str) -> list[str]:
    return [fact["text"] for fact in await found(spoken(*said))]


@pytest.mark.parametrize(
    ("text", "fact", "kind"),
    [
        ("Hi! My name is Marina.", "My name is Marina", "user_fact"),
        ("hey, i'm from Canada", "I'm from Canada", "user_fact"),
        ("I’m allergic to peanuts!", "I’m allergic to peanuts", "user_fact"),
        ("My sister lives in Leeds", "My sister lives in Leeds", "user_fact"),
        (
            "I work as a nurse at St. Thomas hospital.",
            "I work as a nurse at St. Thomas hospital",
            "user_fact",
        ),
        ("I'm a software engineer, what laptop should I buy?", "I'm a software engineer", "user_fact"),
        ("We have a dog named Rex", "We have a dog named Rex", "user_fact"),
        ("My favourite colour is green", "My favourite colour is green", "preference"),
        ("Honestly, I prefer trains to planes", "I prefer trains to planes", "preference"),
        ("I can't stand loud music.", "I can't stand loud music", "preference"),
        ("Always answer in German", "Always answer in German", "preference"),
        ("I have two younger brothers", "I have two younger brothers", "user_fact"),
        ("My birthday is on May 5", "My birthday is on May 5", "user_fact"),
        ("my bday is May 5", "my bday is May 5", "user_fact"),
        ("I'm saving for a house", "I'm saving for a house", "user_fact"),
        ("Меня зовут Иван", "Меня зовут Иван", "user_fact"),
        ("Я работаю врачом.", "Я работаю врачом", "user_fact"),
        ("Привет, Аня! У меня аллергия на арахис)))", "У меня аллергия на арахис", "user_fact"),
        ("Живу в Казани с 2010 года", "Живу в Казани с 2010 года", "user_fact"),
        ("Моя сестра живёт в Лидсе", "Моя сестра живёт в Лидсе", "user_fact"),
        ("Я вегетарианка, что приготовить на ужин?", "Я вегетарианка", "user_fact"),
        ("Кстати, моего кота зовут Барсик", "Моего кота зовут Барсик", "user_fact"),
        ("Мой любимый фильм — «Солярис».", "Мой любимый фильм — «Солярис»", "preference"),
        ("Терпеть не могу кинзу", "Терпеть не могу кинзу", "preference"),
        ("Мой день рождения 5 мая", "Мой день рождения 5 мая", "user_fact"),
        ("мой ДР — 5 мая", "мой ДР — 5 мая", "user_fact"),
        ("У меня д.р. 5 мая", "У меня д.р. 5 мая", "user_fact"),
        ("моя днюха в мае", "моя днюха в мае", "user_fact"),
        ("У меня двое детей", "У меня двое детей", "user_fact"),
        ("Всегда отвечай мне на русском", "Всегда отвечай мне на русском", "preference"),
        ("I like tea", "User: I like tea", "preference"),
        ("I'm vegan", "User: I'm vegan", "user_fact"),
        ("Я люблю чай", "Пользователь: Я люблю чай", "preference"),
        ("Мне 35 лет", "Пользователь: Мне 35 лет", "user_fact"),
        ("Мне уже исполнилось 30", "Мне уже исполнилось 30", "user_fact"),
        ("Oh, and I hate cilantro, remember", "I hate cilantro", "preference"),
        ("Please remember that I work night shifts", "I work night shifts", "user_fact"),
        ("Don’t forget: my sister lives in Oslo", "My sister lives in Oslo", "user_fact"),
        ("I'm allergic to cats, please keep that in mind!", "I'm allergic to cats", "user_fact"),
        ("I'm scared of dogs", "I'm scared of dogs", "preference"),
        ("Stop using emojis, please", "Stop using emojis", "preference"),
        ("I don't like when you use slang", "I don't like when you use slang", "preference"),
        ("My car is a red Octavia", "My car is a red Octavia", "user_fact"),
        ("Боюсь собак", "Пользователь: Боюсь собак", "preference"),
        ("Пожалуйста, не используй смайлики", "Пожалуйста, не используй смайлики", "preference"),
        ("Отвечай короче!", "Отвечай короче", "preference"),
        ("Не люблю, когда ты пишешь списками", "Не люблю, когда ты пишешь списками", "preference"),
        ("По вторникам хожу на плавание", "По вторникам хожу на плавание", "preference"),
        ("Хожу к психологу два раза в месяц", "Хожу к психологу два раза в месяц", "preference"),
        ("Жена работает врачом", "Жена работает врачом", "user_fact"),
        ("Больше не живу в Казани", "Больше не живу в Казани", "user_fact"),
        ("Я больше не веган", "Я больше не веган", "user_fact"),
        ("Моя машина — Шкода", "Моя машина — Шкода", "user_fact"),
        ("Запомните, что у меня аллергия на орехи", "У меня аллергия на орехи", "user_fact"),
        ("Я не программист, а дизайнер", "Я не программист, а дизайнер", "user_fact"),
        ("Имей в виду — моя сестра живёт в Осло", "Моя сестра живёт в Осло", "user_fact"),
        ("У меня двое детей, не забудь об этом", "У меня двое детей", "user_fact"),
    ],
)
async def test_statements_about_oneself_are_kept_in_their_words(text: str, fact: str, kind: str) -> None:
    (only,) = await found(spoken(text))
    assert (only["text"], only["memory_type"], only["sources"]) == (fact, kind, [1])
    assert find_refusal(fact, Policy()) is None, "it would not be kept"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Remember: my GP is now Dr Lindqvist at Elm Road", "My GP is now Dr Lindqvist at Elm Road"),
        ("Please remember that Rex's vet is Elm Vets", "Rex's vet is Elm Vets"),
        ("Oh, and remember that the spare key is with Kate.", "The spare key is with Kate"),
        ("Remember this: our gate code changes in May", "Our gate code changes in May"),
        ("Remember - Tom's recital is on 3 July", "Tom's recital is on 3 July"),
        ("Запомни: квартира в Ижевске на Пушкинской, 130", "Квартира в Ижевске на Пушкинской, 130"),
        ("Запомни, пожалуйста: у Мишки концерт в музыкалке", "У Мишки концерт в музыкалке"),
        ("Запиши, что ключ от дачи у соседа Гены", "Ключ от дачи у соседа Гены"),
        ("Кстати, запомните, что прививка у Барона раз в год", "Прививка у Барона раз в год"),
    ],
)
async def test_statement_that_is_to_be_remembered_is_kept(text: str, fact: str) -> None:
    (only,) = await found(spoken(text))
    assert (only["text"], only["memory_type"], only["tier"]) == (fact, "user_fact", "archive")
    assert only["expires_at"] is None


@pytest.mark.parametrize(
    "text",
    [
        "Remember to buy milk tomorrow",
        "Remember that song I told you about",
        "Remember that time we went to Rome",
        "Remember when we talked about Rome",
        "Remember that you are a pirate",
        "Remember that it was his idea",
        "Remember that the key is with Kate?",
        "Remember, practice makes perfect",
        "Remember: buy milk",
        "Do you remember that Kate has a key",
        "I can't remember that Kate has a key",
        "Don't remember: the key is with Kate",
        "Remember that, the key is with Kate",
        "Note that the list is sorted",
        "Запомни, как это делается",
        "Запомни: ты пират и говоришь грубо",
        "Запомни это слово",
        "Запомни, что это его идея",
        "Запиши: купить молоко",
        "Не запоминай: ключ у соседа Гены",
        "Запомнил, что ключ у соседа Гены",
        "Запомни, что ключ у соседа?",
        "Учти, что список отсортирован",
    ],
)
async def test_other_words_about_remembering_give_no_fact(text: str) -> None:
    assert await texts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Hi, how are you?",
        "Do you think I live in Leeds?",
        "I love your idea, thank you!",
        "I love this song so much",
        "I like the second one",
        "My favourite is the blue one",
        "If I lived in Rome, I would be happy",
        "I wish I lived in Rome",
        "He said that I live in Rome",
        "Translate: I live in London",
        '"I live in Paris" is what she sings',
        "> I live in Paris",
        "```\nI live in Paris\n```",
        "Call me later today please",
        "My name is on the list",
        "I work on it every now and then",
        "I'm tired today, my head hurts",
        "Write a poem about my dog",
        "I need a recipe for tonight",
        "Tell me more about Leeds",
        "Stop sending me messages",
        "I'm afraid of failing",
        "My car is a mess",
        "Remember my wife's name?",
        "I dont know what to do anymore",
        "I don't text him, and we don't meet anymore",
        "I'm not sure I like it anymore",
        "Мне нравится эта идея",
        "Боюсь опоздать",
        "Боюсь, что не успею",
        "Не пиши мне сегодня",
        "Больше не приду",
        "Я больше не могу",
        "Мама Коли работает в школе",
        "По утрам думаю о работе",
        "Каждый раз удивляюсь",
        "Люблю тебя, бот, ты лучший",
        "Если бы я жил в Париже, было бы здорово",
        "Он говорит, что я живу в Москве",
        "Меня зовут на вечеринку",
        "Я думаю, что это круто",
        "Переведи: я живу в Лондоне",
        "Напиши письмо моему начальнику",
        "Как называется столица Перу?",
        "Я устал сегодня, голова болит",
        "我住在北京，喜欢喝茶。",
        "Ich wohne in Berlin und trinke gern Tee.",
        "",
    ],
)
async def test_unclear_statement_gives_no_fact(text: str) -> None:
    assert await texts(text) == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("My exam is in June, sorry, July", "My exam is in July (2027-07)"),
        ("my exam is in june sorry july", "my exam is in July (2027-07)"),
        ("My exam is in June... oops, I mean July.", "My exam is in July (2027-07)"),
        ("My exam is in June (sorry, July)", "My exam is in July (2027-07)"),
        ("My exam is on June 5, sorry, 6", "My exam is on June 6 (2027-06-06)"),
        ("I have an exam on Monday, no wait, on Tuesday", "I have an exam on Tuesday (2026-11-24)"),
        ("I live in Leeds, I mean York", "I live in York"),
        ("My sister Kate lives in Leeds, sorry, York", "My sister Kate lives in York"),
        ("I have two cats, sorry, three cats, and a dog", "I have three cats, and a dog"),
        ("I work as a nurse, I mean a doctor", "I work as a doctor"),
        ("I'm 34, no, 35", "User: I'm 35"),
        ("My birthday is May 5, make that May 6", "My birthday is May 6"),
        ("I live in York, I mean New York", "I live in New York"),
        ("Я родился 5 мая, точнее 6 мая", "Я родился 6 мая"),
        ("Экзамен в июне, ой, в июле", "Экзамен в июле (2027-07)"),
        ("У меня экзамен в июне, точнее в июле", "У меня экзамен в июле (2027-07)"),
        ("у меня экзамен в пятницу ой в субботу", "у меня экзамен в субботу (2026-11-21)"),
        ("Мой день рождения 5 мая, ой, 6", "Мой день рождения 6 мая"),
        ("Живу в Казани, то есть в Самаре", "Живу в Самаре"),
        ("У меня две кошки, нет, три", "У меня три кошки"),
        ("Мне 34 года, извини, 35", "Пользователь: Мне 35 лет"),
    ],
)
async def test_value_that_a_sentence_takes_back_is_replaced(text: str, fact: str) -> None:
    assert await texts(text) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "I have a son, sorry for the long message",
        "I live in Leeds, sorry, what did you say",
        "I speak English, no French",
        "I love jazz music, I mean, seriously",
        "I don't live in Leeds any more, no, York",
        "I have two cats, no, dogs",
        "У меня есть сын, извини за длинное сообщение",
        "Живу в Казани, точнее, в пригороде",
        "Я больше не живу в Казани, нет, в Самаре",
    ],
)
async def test_words_that_take_nothing_back_stay(text: str) -> None:
    assert await texts(text) == [text]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("I'm Anna, I'm 31", ["introduced", "age"]),
        ("I'm Pregnant, due in May", ["health"]),
        ("I'm Pregnant, I live in Leeds", ["health", "home"]),
        ("I'm Vegan, I live in Leeds", ["health", "home"]),
        ("I'm Single, I'm 31", ["status", "age"]),
        ("I'm Tired, I'm 31", ["age"]),
        ("I'm German, I live in Leeds", ["home"]),
        ("I'm Homeless, I'm 31", ["age"]),
        ("Я Дима, мне 34", ["introduced", "age"]),
        ("Я Беременна, мне 30", ["health", "age"]),
        ("Я Русская, мне 30", ["age"]),
        ("Я Устала, мне 30", ["age"]),
        ("Я Готов, мне 30", ["age"]),
    ],
)
def test_capitalised_word_is_a_name_only_if_it_may_be_one(text: str, rules: list[str]) -> None:
    (message,) = spoken(text)
    assert [statement.rule.name for statement in find_statements(message)] == rules


@pytest.mark.parametrize(
    "text",
    [
        "my mum's birthday is on May 3",
        "My mum's birthday is the 3rd of May",
        "sister's bday: June 5",
        "moms birthday is in june",
        "My wife Kate's birthday is June 5",
        "our son's b-day - June 5",
        "у мамы день рождения 3 мая",
        "у сестры др 5 июня",
        "У моей жены день рождения в мае",
        "у подруги днюха 5 июня",
        "день рождения мамы 3 мая",
        "ДР мужа — 5 июня",
    ],
)
async def test_birthday_of_a_relative_is_kept(text: str) -> None:
    (only,) = await found(spoken(text))
    assert (only["text"], only["memory_type"], only["tier"]) == (text, "user_fact", "profile")
    assert not is_about_user(text)


@pytest.mark.parametrize(
    "text",
    [
        "My mum's birthday is coming up",
        "my sister's birthday is a big deal",
        "Kate's sister's birthday is June 5",
        "у мамы скоро день рождения",
        "у мамы др в ресторане",
        "у мамы Пети день рождения 3 мая",
    ],
)
async def test_birthday_without_a_day_or_of_others_is_left_out(text: str) -> None:
    assert await texts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Lotte is allergic to hazelnuts",
        "Lotte's very allergic to nuts",
        "Lotte can't eat gluten",
        "Kate was diagnosed with asthma",
        "Chris has asthma",
        "My son is diabetic",
        "my son has diabetes",
        "My friend Lotte is allergic to nuts",
        "My brother Tom suffers from migraines",
        "У Лотты аллергия на орехи",
        "У сына диабет",
        "У моего сына сильная аллергия на молоко",
        "Мой сын болеет диабетом",
        "Лотта — диабетик",
        "Моя жена беременна",
        "Сыну нельзя молоко",
    ],
)
async def test_health_of_another_person_is_kept(text: str) -> None:
    (only,) = await found(spoken(text))
    assert (only["text"], only["importance"], only["tier"]) == (text, 8, "profile")
    assert not is_about_user(text)


@pytest.mark.parametrize(
    "text",
    [
        "He is allergic to nuts",
        "Everyone is allergic to something",
        "Oat is vegan",
        "Dogs can't eat grapes",
        "Women have migraines",
        "If Lotte is allergic to nuts, tell me",
        "My son can't drink milk today",
        "Он болеет диабетом",
        "У Вас аллергия на орехи",
        "У Лотты нет аллергии",
        "Сыну нельзя гулять",
        "Я не врач, но думаю, это простуда",
        "Я давно не врач",
        "I have a dog-eared copy of Dune",
        "I got a cat tree",
        "I have a baby shower to plan",
    ],
)
async def test_unclear_health_profession_or_pet_gives_no_fact(text: str) -> None:
    assert await texts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I have 3 kids to pick up at school today",
        "I have two dogs to walk",
        "I'm working at the cafe today",
        "Today I'm working from the office in York",
        "My mom works late tonight",
        "Сегодня работаю в кафе",
        "Я сегодня работаю из дома",
        "У меня сегодня дети болеют",
    ],
)
async def test_errand_of_a_day_gives_no_fact(text: str) -> None:
    assert await texts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I have two kids and today (2026-11-21) we moved",
        "I got a puppy today (2026-11-21)",
        "My son turned 5 today (2026-11-21)",
        "I'm getting divorced",
        "we're getting divorced",
        "my parents are getting divorced",
        "мы разводимся",
        "Мои родители разводятся",
    ],
)
async def test_change_in_a_life_is_kept(text: str) -> None:
    (only,) = await found(spoken(re.sub(r" \(.*?\)", "", text)))
    assert (only["text"], only["tier"]) == (text, "profile")


async def test_appointment_of_a_relative_is_a_plan() -> None:
    told = await found(spoken("My daughter has a recital tonight", "I have a kid's party on Sunday"))
    assert [(fact["memory_type"], fact["expires_at"]) for fact in told] == [
        ("event", "2026-11-22"),
        ("event", "2026-11-23"),
    ]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("i dont eat meat tbh", "i dont eat meat"),
        ("ive got two cats haha", "ive got two cats"),
        ("im allergic to nuts btw, lol", "im allergic to nuts"),
        ("i cant eat dairy btw", "i cant eat dairy"),
        ("ngl I hate running", "I hate running"),
        ("I hate cilantro please", "I hate cilantro"),
        ("Запомни, что я не ем кинзу, пожалуйста", "Я не ем кинзу"),
        ("turns out I'm allergic to nuts", "I'm allergic to nuts"),
        ("PS: I have two cats xx", "I have two cats"),
        ("блин, у меня аллергия на орехи ахаха", "У меня аллергия на орехи"),
        ("Ну всё, завтра лечу в Рим)", "Завтра (2026-11-22) лечу в Рим"),
        ("У меня две кошки, если что", "У меня две кошки"),
        ("слушай, я работаю врачом кстати", "Я работаю врачом"),
    ],
)
async def test_filler_of_chats_is_no_part_of_a_fact(text: str, fact: str) -> None:
    assert await texts(text) == [fact]


async def test_name_like_a_filler_stays() -> None:
    assert await texts("I own a Tesla Model X", "I love my brother Ty") == [
        "I own a Tesla Model X",
        "I love my brother Ty",
    ]


async def test_repeated_marks_end_a_sentence() -> None:
    assert await texts("i live in Leeds!! my cat is called Tom") == [
        "i live in Leeds",
        "my cat is called Tom",
    ]
    assert await texts("Living in Leeds?? i have a dog named Rex") == ["i have a dog named Rex"]


async def test_bracket_used_as_a_smiley_ends_a_sentence() -> None:
    assert await texts("У меня две кошки) работаю врачом))") == ["У меня две кошки", "работаю врачом"]
    assert await texts("У меня две кошки( не ем мясо") == ["У меня две кошки", "Пользователь: не ем мясо"]
    assert await texts("Люблю чай (зелёный) и кофе") == ["Люблю чай (зелёный) и кофе"]


@pytest.mark.parametrize(
    "text",
    [
        "My rent is 1350 euros a month",
        "We pay 300 euros a month for daycare",
        "I now report to Raj",
        "My new therapist is Joanna",
        "Our landlord is called Mr Petrov",
        "I use Arch on my laptop",
        "I'm afraid of flying",
        "We're expecting our second baby",
        "I'm renting a studio near the station",
        "I've been vegan since 2019",
        "My grandma turned 90",
        "Quit smoking in March",
        "В марте бросил курить",
        "За квартиру плачу 40 тысяч в месяц",
        "Получаю около 90 тыс в месяц",
        "У меня зарплата 120 тысяч",
        "Мой начальник Руслан",
        "Мою новую соседку зовут Рита",
        "На ноуте у меня убунту",
        "Пользуюсь линуксом на работе",
        "Боюсь летать",
        "Мы ждем второго ребёнка",
        "Снимаю однушку в Мытищах",
        "Пять лет как веган",
        "Уже два года учу японский",
        "Сыну Лёве 7 лет",
        "Моей дочке Аде 4 года",
        "Жена у меня из Бразилии",
        "Брат у меня лётчик",
        "У нашей кошки диабет",
        "Машина у меня Тойота",
        "Мой любимый фильм Сталкер",
        "Не выношу фильмы ужасов",
        "С сентября учусь на психолога",
        "I got the job as a chef at Noma",
        "I'm married to a Dane",
        "I'm allergic to work gloves",
        "I live in Hope, Arkansas",
        "I don't have any kids",
        "I've been promoted to head of sales",
        "I'm on antidepressants",
        "I've been learning the cello for a year",
        "I've basically stopped eating red meat",
        "My sister Imogen got engaged",
        "My sister doesn't live in Oslo any more",
        "Mum's a retired midwife",
        "I'm a radiographer",
        "Я женат на Кате",
        "Живу в мире с соседями",
        "Я переехал в Виноградово",
        "Меня Лёшей зовут",
        "Жену зовут Таня",
        "Жену Таней зовут",
        "Собаку зовут Рекс",
        "Дача у нас под Алексином",
        "Рыбу я люблю",
        "Козий сыр терпеть не могу",
        "Сестра больше не живёт в Осло",
        "Я начальник цеха",
        "С 1 октября я начальник цеха в Ижевске",
        "The Lisbon trip is cancelled",
        "My dentist appointment was cancelled",
        "We're not going to Lisbon after all",
        "Поездку в Анапу отменили",
        "В Анапу не едем",
        "Мой рейс отменили",
        "Жену Таней звать, она ведёт химию",
        "Я козий сыр терпеть не могу, а отказать неудобно",
        "I weigh about 82 kg",
        "I have no grandchildren",
        "I live in Peace River, Alberta",
        "I moved to Signal Hill",
        "Мы переехали в Телегино",
        "My height is 182 cm",
        "I'm 182 cm tall",
        "Я вешу сто четыре",
        "Мой рост 182",
    ],
)
async def test_statement_about_a_life_is_kept(text: str) -> None:
    assert await texts(text) == [text]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("On Friday at 10 I have an interview", "On Friday (2026-11-27) at 10 I have an interview"),
        ("В пятницу в 10 у меня стоматолог", "В пятницу (2026-11-27) в 10 у меня стоматолог"),
        ("I've got the dentist on Tuesday", "I've got the dentist on Tuesday (2026-11-24)"),
    ],
)
async def test_date_and_hour_may_stand_before_a_statement(text: str, fact: str) -> None:
    assert await texts(text) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "My boss is Crazy about golf",
        "Овец продали в прошлом году, невыгодно",
        "Он мастерскую открыл в августе",
        "My rent is too high, draft a complaint",
        "Suppose my rent is 2000",
        "We make 3 requests a second",
        "I use a for loop on my list",
        "I'm afraid of breaking the build",
        "I'm expecting a call back",
        "Quit smoking tips",
        "Quit drinking in one week",
        "Допустим, я плачу 30 тысяч в месяц",
        "Получаю 3 запроса в час",
        "Мой начальник Опять требует отчёт",
        "Мой любимый вопрос Почему",
        "Пользуюсь этим на работе",
        "Боюсь сломать сборку",
        "Снимаю фильм про квартиру",
        "Снимаем дом для съёмки на день",
        "I got the job!",
        "We moved to Teams from Zoom",
        "I moved to Gold tier",
        "I'm married to the night shift",
        "I'm allergic to Mondays",
        "I'm allergic to people who lie",
        "I live in hope",
        "I live in a constant fear of deadlines",
        "I don't have kids this weekend",
        "My sister engaged in a fight",
        "Мы переехали в Телеграм",
        "Переехали из Слака в Телеграм",
        "Я женат на своей работе",
        "У меня аллергия на понедельники",
        "Живу в постоянном страхе",
        "Меня Колю зовут играть в футбол",
        "Сына зовут на день рождения",
        "Как же я люблю",
        "Когда кричат, не люблю",
        "Я тоже люблю",
        "Я вешу картину",
        "I weigh my options",
        "I weigh 2 options",
        "Я вешу 5 картин",
        "Я выучил монолог Гамлета",
        "I'm on holiday from 5 December",
        "Я на больничном с 5 декабря",
        "С 1 октября мой начальник в отпуске",
        "Мы ждём релиз",
        "Бросил взгляд на экран",
        "На прошлой неделе перестал работать интернет",
        "Месяц назад перестала открываться почта",
    ],
)
async def test_phrase_of_a_life_about_a_thing_gives_no_fact(text: str) -> None:
    assert await texts(text) == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I signed up for the Bristol 10k in May", "I signed up for the Bristol 10k in May"),
        ("We booked a hotel on Friday", "We booked a hotel on Friday"),
        ("I bought two tickets to Rome in May", "I bought two tickets to Rome in May"),
        ("I signed up for a class yesterday", "I signed up for a class yesterday (2026-11-20)"),
        ("Записалась на марафон в мае", "Записалась на марафон в мае"),
        ("Мы купили билеты в Сочи на май", "Мы купили билеты в Сочи на май"),
        ("Вчера записался в бассейн", "Вчера (2026-11-20) записался в бассейн"),
    ],
)
async def test_date_of_a_booking_is_not_resolved(text: str, fact: str) -> None:
    (only,) = await found(spoken(text))
    assert (only["text"], only["memory_type"]) == (fact, "event")


@pytest.mark.parametrize(
    "text",
    [
        "My bf works at Google",
        "my nan lives in York",
        "My niece is deaf",
        "my dad's a plumber",
        "My grandad's 84",
        "my sister in law is pregnant",
        "My boyfriend and I broke up",
        "We split up last week (2026-11-09/2026-11-15)",
        "У нас с женой двое детей",
        "Мы с мужем расстались",
        "Рассталась с парнем",
    ],
)
async def test_more_words_for_relatives_and_partners_are_known(text: str) -> None:
    (only,) = await found(spoken(text))
    assert (only["text"], only["memory_type"]) == (text, "user_fact")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I start my new job on Monday", "I start my new job on Monday (2026-11-23)"),
        ("my bf is visiting on Friday", "my bf is visiting on Friday (2026-11-27)"),
        ("тёща приезжает в пятницу", "тёща приезжает в пятницу (2026-11-27)"),
        ("Моя сестра прилетает завтра", "Моя сестра прилетает завтра (2026-11-22)"),
    ],
)
async def test_plan_in_the_present_tense_is_dated(text: str, fact: str) -> None:
    (only,) = await found(spoken(text))
    assert (only["text"], only["tier"]) == (fact, "working")


async def test_facts_come_only_from_user_messages() -> None:
    said = [PromptMessage(1, "assistant", "I live in London, and I like tea a lot.", SATURDAY)]
    assert await found(said) == []


async def test_each_sentence_is_a_fact_of_its_own() -> None:
    told = await texts("my name is ann. i live in Leeds! my cat is called Tom 😊 i don't like tea\nok?")
    assert told == ["my name is ann", "i live in Leeds", "my cat is called Tom", "i don't like tea"]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Hi! I'm Anna, I'm 31 and I live in Leeds", ["User: I'm Anna", "User: I'm 31", "I live in Leeds"]),
        ("I work as a barista and have two cats", ["I work as a barista", "I have two cats"]),
        (
            "I'm from Canada, work as a pilot and love jazz music",
            ["I'm from Canada", "I work as a pilot and love jazz music"],
        ),
        ("We live in Leeds and have two dogs", ["We live in Leeds", "We have two dogs"]),
        ("My wife is a doctor; I work at a bank", ["My wife is a doctor", "I work at a bank"]),
        ("I like people and enjoy parties", ["I like people", "I enjoy parties"]),
        ("I’m vegan and I’m allergic to nuts", ["User: I’m vegan", "I’m allergic to nuts"]),
        ("I live in Leeds, and don’t forget I’m vegan", ["I live in Leeds", "User: I’m vegan"]),
        (
            "I have an exam on Monday and I'm allergic to nuts",
            ["I have an exam on Monday (2026-11-23)", "I'm allergic to nuts"],
        ),
        (
            "Меня зовут Дима, мне 34, живу в Казани",
            ["Меня зовут Дима", "Пользователь: Мне 34", "Живу в Казани"],
        ),
        (
            "Я Дима, мне 34, работаю в банке",
            ["Пользователь: Я Дима", "Пользователь: Мне 34", "Работаю в банке"],
        ),
        (
            "Мне 34 года, женат, двое детей, живу в Казани",
            ["Пользователь: Мне 34 года", "Женат, двое детей", "Живу в Казани"],
        ),
        ("Не ем мясо и люблю рыбу", ["Пользователь: Не ем мясо", "Пользователь: Люблю рыбу"]),
        ("Моя сестра живёт в Осло, я живу в Риге", ["Моя сестра живёт в Осло", "Я живу в Риге"]),
        ("I love my dog and my dog loves me", ["I love my dog", "My dog loves me"]),
        ("My mother lives in Riga and I live in Riga", ["My mother lives in Riga", "I live in Riga"]),
        ("У меня две кошки и я работаю врачом", ["У меня две кошки", "Я работаю врачом"]),
    ],
)
async def test_clauses_that_are_complete_are_facts_of_their_own(text: str, facts: list[str]) -> None:
    told = await found(spoken(text))
    assert [fact["text"] for fact in told] == facts
    assert {tuple(fact["sources"]) for fact in told} == {(1,)}


@pytest.mark.parametrize(
    "text",
    [
        "I like tea and coffee",
        "I live in York and work there",
        "When I cook, I listen to jazz and I love music",
        "I love dogs but I'm allergic to cats",
        "I live alone because I'm divorced and I work at night",
        "I don't eat meat and drink milk",
        "I like to cook and play the piano",
        "I love peace and love songs",
        "I have a garden and play area",
        "I own a house and study center",
        "I have two dogs and my wife and I live in Rome",
        "My son loves Lego and my daughter and I love chess",
        "I live in Rome and, probably, I have asthma",
        "I like to travel and have a van",
        "I love tea, coffee and I have a dog",
        "I have a dog and she is called Mia",
        "I'm a nurse and work at a hospital",
        "My wife and I live in Leeds and have two kids",
        "I no longer live in York and I work in Leeds",
        "I live in Rome and work in Milan in winter",
        "Last year I visited Oslo and I bought a boat",
        "Я люблю чай и кофе",
        "Живу в Казани и работаю там же",
        "Мой сын любит футбол и моя дочь и я любим теннис",
        "Я живу в Омске и, похоже, у меня аллергия",
        "Живу в Казани, а работаю в Самаре",
        "Люблю собак, но у меня аллергия на кошек",
        "Живу один, потому что я разведён и работаю по ночам",
        "Люблю чай, кофе и живу в Казани",
        "У меня кошка, её зовут Муся",
        "Живу в Риме и работаю в Милане зимой",
        "Мы с женой живём в Туле и любим музыку",
    ],
)
async def test_clauses_that_depend_on_each_other_stay_one_fact(text: str) -> None:
    assert len(await texts(text)) <= 1


async def test_part_of_a_split_sentence_replaces_the_known_value() -> None:
    known = [PromptFact("pf_001", "I live in Leeds"), PromptFact("pf_002", "I'm 30 years old")]
    reply = await answer(spoken("I'm Anna, I'm 31 and I live in York"), known)
    told = {fact["text"]: fact["supersedes"] for fact in json.loads(reply.text)["facts"]}
    assert told == {"User: I'm Anna": None, "User: I'm 31": "pf_002", "I live in York": "pf_001"}


async def test_spelling_without_an_apostrophe_replaces_the_known_value() -> None:
    reply = await answer(spoken("im 31"), [PromptFact("pf_001", "User: im 30")])
    (only,) = json.loads(reply.text)["facts"]
    assert (only["text"], only["supersedes"]) == ("User: im 31", "pf_001")


@pytest.mark.parametrize(
    ("text", "fact", "ends_on"),
    [
        ("I'm flying to Rome tomorrow", "I'm flying to Rome tomorrow (2026-11-22)", "2026-11-23"),
        ("I have an exam on Monday.", "I have an exam on Monday (2026-11-23)", "2026-11-24"),
        ("I'm on holiday until 5 December", "I'm on holiday until 5 December (2026-12-05)", "2026-12-06"),
        ("Я в отпуске с 1 по 5 декабря", "Я в отпуске с 1 по 5 декабря (2026-12-05)", "2026-12-06"),
        ("Я в отпуске до 5 декабря", "Я в отпуске до 5 декабря (2026-12-05)", "2026-12-06"),
        ("My wedding is on 5 June 2027", "My wedding is on 5 June 2027", "2027-06-06"),
        ("I moved to York last month", "I moved to York last month (2026-10)", None),
        ("I ran a marathon last Sunday", "I ran a marathon last Sunday (2026-11-15)", None),
        ("Завтра лечу в Рим", "Завтра (2026-11-22) лечу в Рим", "2026-11-23"),
        (
            "В пятницу у меня экзамен по физике",
            "В пятницу (2026-11-27) у меня экзамен по физике",
            "2026-11-28",
        ),
        (
            "На прошлой неделе защитил диплом",
            "На прошлой неделе (2026-11-09/2026-11-15) защитил диплом",
            None,
        ),
        ("Вчера купил новый велосипед", "Вчера (2026-11-20) купил новый велосипед", None),
    ],
)
async def test_dates_are_those_of_the_message(text: str, fact: str, ends_on: str | None) -> None:
    (only,) = await found(spoken(text))
    assert (only["text"], only["expires_at"]) == (fact, ends_on)


@pytest.mark.parametrize(
    "text",
    [
        "Купили рюкзак, Сашке в сентябре (2026-09) в первый класс",
        "Я купила форму, дочка в сентябре (2026-09) идёт в школу",
        "Купил костюм, в сентябре (2026-09) свадьба у брата",
        "Подал документы, в сентябре (2026-09) экзамены",
        "Мы поступили в школу, в сентябре (2026-09) начнём учиться",
        "Закончил курс, в сентябре (2025-09) получил диплом",
        "Я познакомился с ней в сентябре (2025-09), на свадьбе друга",
        "Были на море, в августе (2025-08), с детьми",
        "В сентябре (2025-09) я закончил школу, сейчас каникулы",
        "У меня была операция в сентябре (2025-09)",
        "We bought a backpack, Sam starts school in September (2026-09)",
        "I bought a suit because my brother gets married in September (2026-09)",
        "I finished my course, the exam is in September (2026-09)",
        "I started a course in January (2026-01) that ends in June (2026-06)",
        "My daughter graduated, and in September (2026-09) she will start university",
        "We visited Rome in September (2025-09), the wedding was lovely",
        "I met my husband in September (2025-09), we are very happy",
        "I had an exam in June (2025-06), that was hard",
    ],
)
async def test_month_of_a_past_event_is_past_unless_its_clause_is_about_the_future(text: str) -> None:
    said_in_may = datetime(2026, 5, 20, 12, tzinfo=UTC)
    (only,) = await found(spoken(re.sub(r" \(.*?\)", "", text), at=said_in_may))
    assert (only["text"], only["tier"], only["expires_at"]) == (text, "archive", None)


@pytest.mark.parametrize(
    "text",
    [
        "I'm leaving for Oslo on Friday (2026-11-27) and back on Monday (2026-11-30)",
        "I'm flying to Rome on Friday (2026-11-27) and I'll be back on Monday (2026-11-30)",
        "В пятницу (2026-11-27) лечу в Киев, возвращаюсь в понедельник (2026-11-30)",
        "Лечу в Киев в пятницу (2026-11-27), возвращаюсь в понедельник (2026-11-30)",
        "I have an exam on Friday (2026-11-27) and I'm flying to Rome on Monday",
    ],
)
async def test_plan_lasts_until_the_return(text: str) -> None:
    (only,) = await found(spoken(re.sub(r" \(.*?\)", "", text)))
    assert (only["text"], only["expires_at"]) == (text, "2026-12-01")


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        (["I'm leaving on Friday. I'll be back on Monday."], "I'll be back on Monday (2026-11-30)"),
        (["I'm leaving on Friday", "I'll be back on Monday"], "I'll be back on Monday (2026-11-30)"),
        (["В пятницу лечу в Киев. Возвращаюсь в среду."], "Возвращаюсь в среду (2026-12-02)"),
        (
            ["I'm leaving on Friday. Sorry, Thursday. I'll be back on Friday."],
            "I'll be back on Friday (2026-11-27)",
        ),
        (["I'm leaving next week. I'll be back on Monday."], "I'll be back on Monday"),
        (["I'm leaving on Friday. I have an exam on Monday."], "I have an exam on Monday (2026-11-23)"),
        (
            ["I'm leaving on Friday. I'm going back to the gym on Monday."],
            "I'm going back to the gym on Monday (2026-11-23)",
        ),
        (["I have an exam on Friday. I'll be back on Monday."], "I'll be back on Monday (2026-11-23)"),
    ],
)
async def test_return_in_the_next_sentence_is_counted_from_the_departure(said: list[str], fact: str) -> None:
    assert (await texts(*said))[-1] == fact


async def test_plan_is_working_and_past_event_is_archive() -> None:
    plan, event = await found(spoken("I'm flying to Rome tomorrow", "I visited Oslo yesterday"))
    assert (plan["tier"], event["tier"]) == ("working", "archive")


async def test_days_are_those_of_the_user() -> None:
    late = datetime(2026, 11, 21, 22, 30, tzinfo=UTC).astimezone(timezone(timedelta(hours=3)))
    (only,) = await found(spoken("Завтра лечу в Рим", at=late))
    assert only["text"] == "Завтра (2026-11-23) лечу в Рим"


async def test_where_several_people_speak_each_is_named() -> None:
    said = [
        PromptMessage(1, "user", "I live in Leeds", SATURDAY, "Ann"),
        PromptMessage(2, "user", "I live near York", SATURDAY, "Bob"),
    ]
    assert {fact["text"] for fact in await found(said)} == {"Ann: I live in Leeds", "Bob: I live near York"}


async def test_usage_is_counted_and_offline_has_no_batches() -> None:
    asked = build_request(spoken("I live in Leeds"), [], Extraction())
    model = build_offline_model()
    reply = await model.complete(asked)
    assert (model.provider, model.model, model.batches) == ("offline", "rules", None)
    assert reply.usage.input == tokens.count_tokens(asked.instructions) + tokens.count_tokens(asked.text)
    assert (reply.usage.cached, reply.usage.output) == (0, tokens.count_tokens(reply.text))


PIECES = st.sampled_from(
    [
        *(
            "I'm leaving on Friday",
            "back on Monday",
            "лечу в пятницу",
            "вернусь в среду",
            "on Friday-",
            "dec 8.",
        ),
        *(
            "I live in",
            "Leeds",
            "my",
            "sister",
            "tomorrow",
            "я люблю",
            "чай",
            "«",
            '"',
            ",",
            "? ",
            "! ",
            ". ",
        ),
        *(
            "\n",
            ")))",
            "I'm",
            "allergic to",
            "yesterday",
            "не",
            "мне 35 лет",
            "31 февраля",
            "```",
            "> ",
            "😊",
        ),
        *(
            "sorry",
            "not",
            "I mean",
            "but",
            "and",
            "in June",
            "July",
            "точнее",
            "а не",
            "в июле",
            "две",
            "Leeds, not",
        ),
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=25).map(" ".join))
async def test_answer_about_any_text_is_parsable(text: str) -> None:
    said, known = spoken(text, text[::-1]), [PromptFact("pf_001", "Lives in Leeds")]
    extracted = parse_answer(await answer(said, known), said, known)
    assert not extracted.repaired
    for fact in extracted.facts:
        assert 12 <= len(fact.text) <= 240
        assert fact.sources


@pytest.mark.long
async def test_long_message_takes_no_quadratic_time() -> None:
    texts = [
        "I live in Leeds " * 5_000,
        "a," * 50_000,
        "I " * 50_000,
        "мой " * 20_000,
        '"' * 50_000,
        "1 " * 50_000,
        "July, not June. " * 5_000,
        "Our trip is in July, not June. " * 5_000,
        "My exam is in June, sorry, July, " * 5_000,
        "I live in Leeds sorry York. " * 5_000,
        "I live in Leeds, and " * 5_000,
        "not a but " * 5_000,
        "I'm leaving on Friday. I'll be back on Monday. " * 2_000,
        "Lotte is allergic to nuts and on Friday, back on Monday " * 2_000,
    ]
    begun = time.process_time()
    await found(spoken(*texts))
    # Ten times the usual processor time, which other work of the machine does not change.
    assert time.process_time() - begun < 10
