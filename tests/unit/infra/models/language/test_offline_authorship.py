"""Sentences that say nothing about their author: texts to translate, roles, jokes, and words about others."""

import json
import time
from datetime import UTC, datetime

import pytest

from mnemon_consumers.extract.prompt import build_request
from mnemon_contracts.settings.language_models import Extraction
from mnemon_infra.models.language.offline.authorship import list_sentences
from mnemon_infra.models.language.offline.model import build_offline_model
from mnemon_infra.models.language.port import PromptMessage

SATURDAY = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)


async def found(*said: str) -> list[str]:
    messages = [PromptMessage(number, "user", text, SATURDAY) for number, text in enumerate(said, 1)]
    answer = await build_offline_model().complete(build_request(messages, (), Extraction()))
    return [fact["text"] for fact in json.loads(answer.text)["facts"]]


@pytest.mark.parametrize(
    "text",
    [
        "Translate this into German: I live in London. I have two cats.",
        "Could you proofread my email?\nI live in London.\nI have two cats.",
        "Please rewrite the following.\n\nI'm allergic to nuts.",
        "Write a poem: I live in Rome",
        "Continue the story: I live in Rome with my dog",
        "Допиши рассказ: я живу в Риме с собакой",
        "Write an email to my landlord:\nI live in flat 3. I have two cats.",
        "Pretend you're a pirate. I'm a sailor. I live in a ship.",
        "Let's roleplay! I work as a detective. I have two cats.",
        "You are a chef. I'm allergic to nuts.",
        "Переведи на английский: меня зовут Алексей. Я работаю на заводе.",
        "Исправь ошибки в тексте\nЯ живу в Туле.\nУ меня две кошки.",
        "Напиши письмо хозяину квартиры:\nЯ живу в Туле. У меня две кошки.",
        "Давай поиграем: я детектив, живу в Лондоне. У меня две кошки.",
        "Представь, что ты пират. Я живу на корабле.",
        "Ты повар. У меня аллергия на орехи.",
    ],
)
async def test_text_to_work_on_and_role_give_no_fact(text: str) -> None:
    assert await found(text) == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I have two cats. Translate this: I live in London.", "I have two cats"),
        ("You're a star! I passed my exam yesterday.", "I passed my exam yesterday (2026-11-20)"),
        ("You're an artist! I passed my exam yesterday.", "I passed my exam yesterday (2026-11-20)"),
        ("Write a poem for my wife. We have two kids.", "We have two kids"),
        ("У меня две кошки. Переведи: я живу в Туле.", "У меня две кошки"),
        ("Ты врач? Я работаю грузчиком", "Я работаю грузчиком"),
        ("Ты лучший! У меня двое детей.", "У меня двое детей"),
    ],
)
async def test_sentence_apart_from_a_task_is_of_the_author(text: str, fact: str) -> None:
    assert await found(text) == [fact]


async def test_text_to_work_on_corrects_nothing() -> None:
    assert await found("Our trip is in June", "Translate this.\nJuly, not June") == [
        "Our trip is in June (2027-06)"
    ]


@pytest.mark.parametrize(
    "said",
    [
        ["I'm pregnant!! just kidding"],
        ["I'm pregnant lol jk"],
        ["I'm pregnant!", "Just kidding."],
        ["I love Mondays, said no one ever"],
        ["Обожаю понедельники, сказал никто никогда"],
        ["Я врач, шучу"],
        ["Я беременна!!! Шутка"],
        ["У меня пятеро детей", "шучу)"],
    ],
)
async def test_joke_that_is_taken_back_gives_no_fact(said: list[str]) -> None:
    assert await found(*said) == []


@pytest.mark.parametrize(
    "said",
    [
        ["Don't save this, but I'm pregnant"],
        ["Please don't remember this: I'm allergic to nuts"],
        ["Please don't remember that I live in Leeds"],
        ["Off the record, I hate my boss and I'm looking for a job"],
        ["Forget that I live in Leeds"],
        ["You can forget that I'm a vegan"],
        ["I'm pregnant, but don't store that"],
        ["I'm pregnant!", "Please don't save it."],
        ["Не запоминай это, но я беременна"],
        ["Только не сохраняйте: у меня диабет"],
        ["Забудь, что я живу в Казани"],
        ["Забудь о том, что я веган"],
        ["Не для протокола, я развожусь"],
        ["Я беременна, но не запоминай это"],
        ["Я беременна! Не записывай, пожалуйста."],
    ],
)
async def test_statement_that_is_not_to_be_saved_gives_no_fact(said: list[str]) -> None:
    assert await found(*said) == []


@pytest.mark.parametrize(
    "text",
    [
        "Don't forget that I live in Leeds",
        "Forget about Rome, I live in Leeds",
        "I don't remember the year, but I moved to Leeds",
        "I was born in Paris, but I don't remember it",
        "I grew up in York but I don't remember that",
        "I play the guitar but never record it",
        "I live in Leeds. Don't save the draft.",
        "Не забудь, что я живу в Казани",
        "Не помню год, но я переехал в Казань",
        "Забудь про Рим, я живу в Казани",
        "Я живу в Казани. Не сохраняй файл.",
    ],
)
async def test_other_words_about_saving_and_forgetting_prevent_no_fact(text: str) -> None:
    assert await found(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm married to my job, as they say",
        "I'm a taxi driver, so to speak",
        "I live in Excel, figuratively speaking",
        "Я женат на работе, как говорится",
        "Живу в ворде, можно сказать",
        "Я водитель, так сказать",
        "Я живу в Телеграме, образно говоря",
    ],
)
async def test_figure_of_speech_gives_no_fact(text: str) -> None:
    assert await found(text) == []


@pytest.mark.parametrize(
    "text",
    ["I love stand-up, I'm not kidding", "I have two kids, no joke", "Обожаю шутки, у меня двое детей"],
)
async def test_words_about_jokes_take_nothing_back(text: str) -> None:
    assert await found(text)


@pytest.mark.parametrize(
    "text",
    [
        "Sam: I live in Leeds",
        "Sam Smith: I'm allergic to nuts",
        "Sam wrote: I'm allergic to nuts",
        "lyrics: I love rock and roll",
        "She goes: I love pineapple pizza",
        "Her text from 10:30: I love pineapple pizza",
        "As the song goes, I'm living in America",
        "And he was like, I live in Boston",
        "From his email: I live in Boston",
        "In the movie, I live in Zion",
        "It's not true that I live in Rome",
        "I lied that I have a dog",
        "Apparently, I have asthma",
        "I think I have adhd",
        "I probably have adhd",
        "Подруга спрашивает: я живу в Омске",
        "Петя: я живу в Москве",
        "Петя написал: у меня аллергия на орехи",
        "Он мне такой: у меня аллергия на кошек",
        "Её ответ: я работаю в Гугле",
        "Все думают, что у меня есть собака",
        "Мама верит, что я веган",
        "Неправда, что я живу в Риме",
        "Пусть мне 40 лет и я холост",
        "В этом сценарии я женат и у меня двое детей",
        "Кажется, у меня аллергия",
        "Похоже, у меня диабет",
        "Мне снилось, что я живу в Париже",
    ],
)
async def test_words_of_others_and_doubts_give_no_fact(text: str) -> None:
    assert await found(text) == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Believe me, I live in Rome", "Believe me, I live in Rome"),
        ("No kidding, I live in Rome", "No kidding, I live in Rome"),
        ("Make a note: I live in Rome", "Make a note: I live in Rome"),
        ("Fun fact: I live in Rome", "I live in Rome"),
        ("Important: I'm allergic to nuts", "I'm allergic to nuts"),
        ("She gets up at 6:30, and I work as a nurse", "She gets up at 6:30, and I work as a nurse"),
        ("I'm in the film business, I live in York", "I'm in the film business, I live in York"),
        ("I believe in God and I live in York", "I believe in God and I live in York"),
        ("I have a book-loving sister", "I have a book-loving sister"),
        ("Он встаёт в 6:30, а я работаю врачом", "Он встаёт в 6:30, а я работаю врачом"),
        ("У меня отличное чувство юмора, я живу в Туле", "У меня отличное чувство юмора, я живу в Туле"),
        ("У меня классный кот", "У меня классный кот"),
        ("У меня фотограф сестра", "У меня фотограф сестра"),
        ("Важно: у меня аллергия на орехи", "У меня аллергия на орехи"),
        ("Запиши: у меня аллергия на орехи", "У меня аллергия на орехи"),
    ],
)
async def test_own_words_after_an_introduction_stay(text: str, fact: str) -> None:
    assert await found(text) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "I have a list of dogs in Python",
        "I have a class Dog with a method bark",
        "I have a picture of my wife",
        "У меня есть класс Собака с методом лаять",
        "У меня есть фото жены",
    ],
)
async def test_thing_that_shows_an_animal_or_relative_is_neither(text: str) -> None:
    assert await found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Брат звонил, он в Екб переехал. развёлся, бедолага",
        "сестра рассказала про отпуск. вчера купила машину",
        "мама звонила. всё хорошо. переехала в Тулу",
        "муж задолбал, вчера купил третью удочку",
        "подруга в шоке: вышла замуж и сразу развелась",
        "мой брат придурок. бросил работу",
    ],
)
async def test_past_form_after_another_person_gives_no_fact(text: str) -> None:
    assert await found(text) == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Жена болеет. Вчера купил ей апельсины", "Вчера (2026-11-20) купил ей апельсины"),
        ("Брат звонил. Я развёлся", "Пользователь: Я развёлся"),
        ("Брат уехал, а я купил вчера машину", "Брат уехал, а я купил вчера (2026-11-20) машину"),
        ("Вчера купил машину", "Вчера (2026-11-20) купил машину"),
        ("Брат звонил. Вчера я купил машину", "Вчера (2026-11-20) я купил машину"),
        ("Брат звонил. Живу в Туле", "Пользователь: Живу в Туле"),
    ],
)
async def test_own_past_form_after_another_person_stays(text: str, fact: str) -> None:
    assert fact in await found(text)


def test_authorship_of_a_long_message_takes_no_quadratic_time() -> None:
    begun = time.process_time()
    for text in ("муж купил. " * 2_000, "Sam: " * 4_000, "jk " * 6_000, "a " * 10_000, "(" * 20_000):
        list(list_sentences(text))
    assert time.process_time() - begun < 10
