"""Coverage of summaries by rules: each exchange is present, with its names, numbers and dates."""

import re
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon_contracts.events.chat import Role
from mnemon_infra.models.language.offline.summaries import MOST_CHARACTERS, MOST_WORDS
from mnemon_infra.models.language.port import PromptMessage
from tests.support.hypothesis_profiles import scale_examples
from tests.unit.infra.models.language.test_offline_summary import SATURDAY, earlier, spoken, summary

ENGLISH = spoken(
    (
        "user",
        (
            "Hi there! I want to book a table for 5 people at Berezka on Friday at 19:30, "
            "it is my sister Emma's birthday."
        ),
    ),
    (
        "assistant",
        (
            "Sure! I can book Berezka at 19:30 on Friday. The deposit is 2,000 rubles. "
            "Let me know if you need anything else."
        ),
    ),
    ("user", "Great, thanks. Also my phone broke, I bought a Pixel yesterday."),
    ("assistant", "You may want to transfer your contacts with Google Drive."),
    ("user", "What could I give to her? She turns 34."),
    ("assistant", "A pottery class at Clay & Co costs 45 euros."),
)
RUSSIAN = spoken(
    (
        "user",
        (
            "Привет! Хочу заказать столик на 5 человек в Берёзке в пятницу в 19:30, "
            "у моей сестры Эммы день рождения."
        ),
    ),
    (
        "assistant",
        "Конечно! Забронирую Берёзку на 19:30. Депозит 2000 рублей. Обращайтесь, если что.",
    ),
    ("user", "Отлично, спасибо. Ещё у меня сломался телефон, вчера купил Pixel."),
    ("assistant", "Перенесите контакты через Google Drive."),
    ("user", "Что ей подарить? Ей исполняется 34 года."),
    ("assistant", "Занятие в студии Глина стоит 45 евро."),
)


def on_days(messages: Sequence[PromptMessage], *days: int) -> list[PromptMessage]:
    """Return the messages in exchanges of two, exchange N dated `days[N]` days after `SATURDAY`."""
    return [
        each._replace(at=SATURDAY + timedelta(days=days[place // 2])) for place, each in enumerate(messages)
    ]


async def test_every_exchange_is_covered_with_its_names_and_numbers() -> None:
    text = await summary(ENGLISH)
    kept = ("5 people", "Berezka", "19:30", "Emma", "2,000", "Pixel", "2026-11-20", "Google Drive", "34")
    assert [each for each in (*kept, "Clay & Co", "45 euros") if each not in text] == []
    assert text.startswith("[2026-11-21] User: I want to book a table")
    assert "What could I give to her?" in text


async def test_every_exchange_is_covered_in_russian_too() -> None:
    text = await summary(RUSSIAN)
    kept = ("5 человек", "Берёзке", "19:30", "Эммы", "2000", "Pixel", "2026-11-20", "Google Drive", "34")
    assert [each for each in (*kept, "Глина", "45 евро") if each not in text] == []
    assert text.startswith("[2026-11-21] Пользователь: Хочу заказать столик")
    assert "Что ей подарить?" in text


@pytest.mark.parametrize(("messages", "user"), [(ENGLISH, "User"), (RUSSIAN, "Пользователь")])
async def test_the_date_is_told_where_the_day_changes(messages: list[PromptMessage], user: str) -> None:
    text = await summary(on_days(messages, 0, 0, 3))
    assert re.findall(r"\[[^]]+\] \w+:", text) == [f"[2026-11-21] {user}:", f"[2026-11-24] {user}:"]


async def test_greetings_thanks_and_offers_of_help_are_left_out() -> None:
    english, russian = await summary(ENGLISH), await summary(RUSSIAN)
    for courtesy in ("Hi", "thanks", "Great", "Sure", "Let me know", "else"):
        assert courtesy not in english
    for courtesy in ("Привет", "спасибо", "Отлично", "Конечно", "Обращайтесь"):
        assert courtesy not in russian


@pytest.mark.parametrize("messages", [ENGLISH, RUSSIAN])
async def test_merged_summary_keeps_fewer_words_of_older_exchanges(messages: list[PromptMessage]) -> None:
    days = range(0, 60, 10)
    summaries = []
    for number, day in enumerate(days):
        of_a_day = [
            each._replace(at=each.at + timedelta(days=day), text=each.text.replace("19:30", f"1{number}:30"))
            for each in messages
        ]
        summaries.append(await summary(of_a_day))
    text = await summary(earlier(*summaries))
    assert len(text.split()) <= MOST_WORDS
    by_day = re.split(r"\[(\d{4}-\d\d-\d\d)\] ", text)[1:]
    assert by_day[::2] == [str((SATURDAY + timedelta(days=day)).date()) for day in days]
    assert len(by_day[1]) < len(by_day[-1])


NAMES = {
    "en": ("Abigail", "Bertram", "Cordelia", "Dorian", "Esmeralda", "Fitzroy", "Gwendolyn", "Horatio"),
    "ru": ("Агафьей", "Богданом", "Василисой", "Германом", "Домной", "Евстафием", "Жанной", "Захаром"),
}
FRAMES = {
    "en": ("Yesterday I went out with {} and it was fine", "could you maybe tell {} that we are late"),
    "ru": ("Вчера мы гуляли с {} и было неплохо", "расскажи нам пожалуйста что сделать с {} завтра вечером"),
}
ANSWERS = {
    "en": ("Sure!", "That sounds like something people enjoy a lot in autumn.", "I will tell {} so."),
    "ru": ("Хорошо!", "Осенью многие люди любят такое занятие.", "Я так и сделаю с {}."),
}


@given(
    language=st.sampled_from(["en", "ru"]),
    names=st.lists(st.integers(0, 7), min_size=1, max_size=20),
    data=st.data(),
)
@settings(max_examples=scale_examples(60))
async def test_every_exchange_with_a_name_or_a_number_leaves_a_trace(
    language: str, names: list[int], data: st.DataObject
) -> None:
    turns: list[tuple[Role, str]] = []
    traces = []
    for number, place in enumerate(names):
        name = data.draw(st.sampled_from([NAMES[language][place], f"{number + 101}"]))
        filler = ". ".join(data.draw(st.lists(st.sampled_from(FRAMES[language]), max_size=3)))
        in_answer = data.draw(st.booleans())
        frame = data.draw(st.sampled_from(FRAMES[language]))
        nameless = filler.replace(" {}", " them")
        asked = nameless if in_answer else f"{nameless}. {frame.format(name)}"
        answer = data.draw(st.sampled_from(ANSWERS[language]))
        turns += [("user", asked), ("assistant", ANSWERS[language][2].format(name) if in_answer else answer)]
        traces.append(name)
    text = await summary(spoken(*turns))
    assert [name for name in traces if name not in text] == []
    assert len(text.split()) <= MOST_WORDS
    assert len(text) <= MOST_CHARACTERS


@pytest.mark.long
async def test_of_very_many_exchanges_those_with_details_and_the_newest_are_told() -> None:
    turns: list[tuple[Role, str]] = []
    for number in range(400):
        named = f"I met Bertram{number} there" if number in (3, 100) else f"it was a {'very ' * number} day"
        turns += [("user", named), ("assistant", "")]
    text = await summary(spoken(*turns))
    assert "Bertram3" in text
    assert "Bertram100" in text
    assert len(text.split()) <= MOST_WORDS
