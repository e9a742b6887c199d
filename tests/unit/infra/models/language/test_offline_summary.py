"""Summaries by rules: a part of each exchange, in the words of the speakers, within limits of length."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_contracts.events.chat import Role
from mnemon_infra.models.language.offline.details import TokenizedSentence
from mnemon_infra.models.language.offline.model import build_offline_model
from mnemon_infra.models.language.offline.summaries import MOST_CHARACTERS, MOST_WORDS, USUAL_WORDS
from mnemon_infra.models.language.port import ModelRequest, PromptMessage

SATURDAY = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)


def spoken(*turns: tuple[Role, str]) -> list[PromptMessage]:
    return [PromptMessage(number, role, text, SATURDAY) for number, (role, text) in enumerate(turns, 1)]


def earlier(*summaries: str) -> list[PromptMessage]:
    return spoken(*(("system", text) for text in summaries))


async def summary(messages: Sequence[PromptMessage]) -> str:
    return (await build_offline_model().complete(ModelRequest("compact", "Sum it up.", "...", messages))).text


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Hi, I'm Ann", "User: I'm Ann."),
        ("Hello Tom!", "User: Hello Tom!"),
        ("Thanks, that works with 3 eggs", "User: That works with 3 eggs."),
        ("Привет, я Оля", "Пользователь: Я Оля."),
        ("Спасибо!", "Пользователь: Спасибо!"),
        ("Добрый вечер! Мне 34 года", "Пользователь: Мне 34 года."),
    ],
)
async def test_statement_after_a_greeting_stays(said: str, kept: str) -> None:
    assert await summary(spoken(("user", said))) == f"[2026-11-21] {kept}"


async def test_statements_of_users_about_themselves_rank_first() -> None:
    text = await summary(
        spoken(
            ("user", "Hi there!"),
            ("assistant", "Hello! What can I do for you today?"),
            ("user", "I'm flying to Rome tomorrow. It is what it is."),
            ("assistant", "Have a good trip!"),
        )
    )
    assert text == "[2026-11-21] User: I'm flying to Rome tomorrow (2026-11-22)."


@pytest.mark.parametrize(
    ("turns", "kept"),
    [
        ((("user", "I lost my keys"), ("assistant", "Where did you see them?")), "User: I lost my keys."),
        (
            (("user", "I lost my keys"), ("assistant", "Did you ask Emma?")),
            "User: I lost my keys. Assistant: Did you ask Emma?",
        ),
        (
            (("user", "Я потерял ключи"), ("assistant", "Где видел их в последний раз?")),
            "Пользователь: Я потерял ключи.",
        ),
        (
            (("user", "Я потерял ключи"), ("assistant", "Спросил у Эммы?")),
            "Пользователь: Я потерял ключи. Ассистент: Спросил у Эммы?",
        ),
    ],
)
async def test_of_the_assistants_questions_those_that_name_something_are_told(
    turns: tuple[tuple[Role, str], ...], kept: str
) -> None:
    assert await summary(spoken(*turns)) == f"[2026-11-21] {kept}"


@pytest.mark.parametrize(
    ("turns", "kept"),
    [
        (
            (("user", "Haha my cat fell off the shelf lol"), ("user", "lmao"), ("user", "hahaha!!")),
            "User: My cat fell off the shelf.",
        ),
        ((("user", "Ha Long Bay is in Vietnam"), ("user", "oh, ok")), "User: Ha Long Bay is in Vietnam."),
        (
            (("user", "ахаха кот упал с полки лол"), ("user", "спс"), ("user", "хм, пон")),
            "Пользователь: Кот упал с полки.",
        ),
    ],
)
async def test_laughter_and_filler_are_left_out(turns: tuple[tuple[Role, str], ...], kept: str) -> None:
    assert await summary(spoken(*turns)) == f"[2026-11-21] {kept}"


@pytest.mark.parametrize(
    ("turns", "kept"),
    [
        (
            (
                ("assistant", "Where shall we go?"),
                ("user", "Lisbon."),
                ("assistant", "Great choice! When?"),
                ("user", "June."),
            ),
            "Assistant: Where shall we go? User: Lisbon. Assistant: Great choice! When? User: June.",
        ),
        (
            (
                ("user", "I want a dog"),
                ("assistant", "Do you have a garden?"),
                ("user", "Yes."),
                ("assistant", "Are you home all day?"),
                ("user", "Yes."),
                ("assistant", "Shall I look for a breeder?"),
                ("user", "Sure!"),
            ),
            (
                "User: I want a dog. Assistant: Do you have a garden? User: Yes. Assistant: Are you home all "
                "day? User: Yes. Assistant: Shall I look for a breeder? User: Sure!"
            ),
        ),
        (
            (
                ("user", "Мне нужен отпуск"),
                ("assistant", "Куда поедем?"),
                ("user", "Ок, Лиссабон"),
                ("assistant", "Забронировать отель?"),
                ("user", "ага"),
            ),
            (
                "Пользователь: Мне нужен отпуск. Ассистент: Куда поедем? Пользователь: Ок, Лиссабон. "
                "Ассистент: Забронировать отель? Пользователь: ага."
            ),
        ),
        (
            (
                ("assistant", "Are you ok with peanuts?"),
                ("user", "Hm, no"),
                ("assistant", "Which city?"),
                ("user", "haha Rome"),
            ),
            "Assistant: Are you ok with peanuts? User: Hm, no. Assistant: Which city? User: haha Rome.",
        ),
        (
            (("assistant", "Можно орехи?"), ("user", "Ну, нет")),
            "Ассистент: Можно орехи? Пользователь: Ну, нет.",
        ),
        # "Ok" is no answer to a question that asks for more than yes or no.
        (
            (
                ("user", "My phone broke"),
                ("assistant", "What happened to it?"),
                ("user", "ok"),
            ),
            "User: My phone broke.",
        ),
    ],
)
async def test_short_answer_stays_with_its_question(turns: tuple[tuple[Role, str], ...], kept: str) -> None:
    assert await summary(spoken(*turns)) == f"[2026-11-21] {kept}"


async def test_summary_is_in_the_language_of_the_user() -> None:
    text = await summary(
        spoken(
            ("user", "Переведи, пожалуйста, эту фразу: the quick fox"),
            ("assistant", "A long English text about a quick brown fox and a lazy dog, which jumps."),
        )
    )
    assert text.startswith("[2026-11-21] Пользователь: ")
    assert "Ассистент: A long English text" in text


async def test_summary_names_the_speaker() -> None:
    said = [
        PromptMessage(1, "user", "I have a dog named Rex", SATURDAY, "Ann"),
        PromptMessage(2, "user", "I have a cat named Tom", SATURDAY, "Ben"),
    ]
    assert await summary(said) == (
        "[2026-11-21] User (Ann): I have a dog named Rex. User (Ben): I have a cat named Tom."
    )


async def test_tool_results_and_code_are_left_out() -> None:
    text = await summary(
        spoken(
            ("user", "```\nselect * from orders\n```\nThis query takes 40 seconds on my server"),
            ("tool", "Seq Scan on orders (cost=0.00..431.00 rows=21000)"),
            ("assistant", "(tools used: sql)"),
        )
    )
    assert text == "[2026-11-21] User: This query takes 40 seconds on my server."


async def test_a_sentence_that_says_the_same_is_not_shown_beside_it() -> None:
    text = await summary(
        spoken(
            ("user", "My sister Emma lives in Leeds near the station"),
            ("assistant", "Your sister Emma lives in Leeds near the station."),
            ("assistant", "The train to York takes half an hour."),
        )
    )
    assert text == (
        "[2026-11-21] User: My sister Emma lives in Leeds near the station. "
        "Assistant: The train to York takes half an hour."
    )


async def test_a_long_sentence_is_shown_in_part() -> None:
    text = await summary(spoken(("user", "I need a word " + "and another word " * 200)))
    assert text.endswith("…")
    assert len(text.split()) <= USUAL_WORDS


@pytest.mark.parametrize(
    "ending", ["Rupert arrived.", "Rupert arrived!", "дядя Рупрехт приехал.", "“Rupert arrived.”"]
)
def test_a_part_up_to_the_end_of_a_sentence_ends_as_the_sentence(ending: str) -> None:
    part = TokenizedSentence.from_text(f"and then we talked of many other things, {ending}").clip(4)
    assert part.startswith("…")
    assert part.endswith(ending)


@pytest.mark.parametrize("ending", ["Rupert arrived", "Rupert arrived,", "Rupert arrived -"])
def test_a_part_up_to_an_end_without_a_mark_ends_with_an_ellipsis(ending: str) -> None:
    part = TokenizedSentence.from_text(f"and then we talked of many other things, {ending}").clip(4)
    assert part.endswith(" Rupert arrived…")


def test_a_part_before_the_end_of_a_sentence_ends_with_an_ellipsis() -> None:
    part = TokenizedSentence.from_text("Rupert arrived, and then we talked of many other things.").clip(2)
    assert part == "Rupert arrived…"


@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        ("and then we talked of many other things " * 9 + "until my uncle Rupert came", "Rupert"),
        ("и потом мы ещё долго говорили о разном " * 9 + "пока не пришёл мой дядя Рупрехт", "Рупрехт"),
        ("because of this and that and whatever else " * 9 + "it was 38.5 degrees", "38.5 degrees"),
        ("из-за того и сего и всякого разного прочего " * 9 + "было 38,5 градусов", "38,5 градусов"),
    ],
)
async def test_of_a_long_sentence_the_part_with_names_and_numbers_is_shown(sentence: str, kept: str) -> None:
    assert kept in await summary(spoken(("user", sentence)))


@pytest.mark.parametrize("messages", [[], spoken(("user", "👍"), ("assistant", "🙂 !!"))])
async def test_summary_without_words_says_so(messages: list[PromptMessage]) -> None:
    assert await summary(messages) == "There were no words."


async def test_merged_summary_keeps_speakers_and_the_sentences_with_details() -> None:
    text = await summary(
        earlier(
            "[2026-03-01] User: I moved from Leeds to York in March. Ok. Assistant: Shall I go on?",
            "User (Ann): That is nice. I have a dog named Rex.",
            "The user asked for a vet in York, and the assistant named two.",
        )
    )
    assert text.startswith("[2026-03-01] User: I moved from Leeds to York in March.")
    assert "User (Ann): I have a dog named Rex." in text
    assert text.endswith("The user asked for a vet in York, and the assistant named two.")


async def test_merged_russian_summary_keeps_the_same() -> None:
    text = await summary(
        earlier(
            "[2026-03-01] Пользователь: В марте я переехал из Твери в Казань. Ассистент: Продолжим?",
            "User (Аня): У меня есть собака, её зовут Рекс.",
            "Пользователь искал ветеринара в Казани, ассистент назвал двух.",
        )
    )
    assert text.startswith("[2026-03-01] Пользователь: В марте я переехал из Твери в Казань.")
    assert "Пользователь (Аня): У меня есть собака, её зовут Рекс." in text
    assert text.endswith("Пользователь искал ветеринара в Казани, ассистент назвал двух.")


async def test_dates_of_earlier_summaries_are_not_counted_again() -> None:
    assert (
        await summary(earlier("User: I fly tomorrow (2026-01-02).")) == "User: I fly tomorrow (2026-01-02)."
    )


async def test_repeated_merging_stays_within_bounds() -> None:
    summaries: list[str] = []
    for number in range(60):
        place = f"place number {number}"
        summaries.append(
            await summary(
                spoken(
                    (
                        "user",
                        f"I visited {place} with my colleague and took {number} pictures of the old town",
                    ),
                    ("assistant", f"It has a museum about {number * 7} years old that you may like."),
                )
            )
        )
        if len(summaries) > 6:
            summaries = [await summary(earlier(*summaries))]
            assert len(summaries[0].split()) <= MOST_WORDS
            assert place in summaries[0], "the newest is among them"


ROLES = st.sampled_from(["user", "assistant", "tool", "system"])


@given(st.lists(st.tuples(ROLES, st.text(max_size=400)), max_size=8))
async def test_any_text_gets_a_summary_within_bounds(turns: list[tuple[Role, str]]) -> None:
    text = await summary(spoken(*turns))
    assert text.strip()
    assert len(text.split()) <= MOST_WORDS
    assert len(text) <= MOST_CHARACTERS
    assert await summary(spoken(*turns)) == text
