"""Summaries by rules: the sentences that tell most, within bounds, in the words in which they were said."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.chat import Role
from infra.models.language.offline import offline
from infra.models.language.port import Request, Said
from infra.models.language.rules.summarising import MOST_WORDS

SATURDAY = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)


def spoken(*turns: tuple[Role, str]) -> list[Said]:
    return [Said(number, role, text, SATURDAY) for number, (role, text) in enumerate(turns, 1)]


def earlier(*summaries: str) -> list[Said]:
    return spoken(*(("system", text) for text in summaries))


async def summary(said: Sequence[Said]) -> str:
    return (await offline().complete(Request("compact", "Sum it up.", "...", said))).text


async def test_what_the_user_says_of_themselves_tells_most() -> None:
    text = await summary(
        spoken(
            ("user", "Hi there!"),
            ("assistant", "Hello! What can I do for you today?"),
            ("user", "I'm flying to Rome tomorrow. It is what it is."),
            ("assistant", "Have a good trip!"),
        )
    )
    assert text.startswith("User: I'm flying to Rome tomorrow (2026-11-22).")


async def test_it_is_in_the_language_of_the_conversation() -> None:
    text = await summary(
        spoken(
            ("user", "Привет! Я вегетарианка. Как приготовить борщ без мяса?"),
            ("assistant", "Используйте грибной бульон, свёклу и капусту."),
            ("user", "Спасибо! Завтра ко мне приезжает сестра из Перми"),
        )
    )
    assert text == (
        "Ассистент: Используйте грибной бульон, свёклу и капусту. "
        "Пользователь: Завтра (2026-11-22) ко мне приезжает сестра из Перми."
    )


async def test_who_speaks_is_named() -> None:
    said = [Said(1, "user", "I have a dog named Rex", SATURDAY, "Ann")]
    assert await summary(said) == "User (Ann): I have a dog named Rex."


async def test_what_tools_say_and_code_are_left_out() -> None:
    text = await summary(
        spoken(
            ("user", "```\nselect * from orders\n```\nThis query takes 40 seconds on my server"),
            ("tool", "Seq Scan on orders (cost=0.00..431.00 rows=21000)"),
            ("assistant", "(tools used: sql)"),
        )
    )
    assert text == "User: This query takes 40 seconds on my server."


async def test_a_sentence_that_says_the_same_is_not_shown_beside_it() -> None:
    text = await summary(
        spoken(
            ("user", "My sister Emma lives in Leeds near the station"),
            ("assistant", "Your sister Emma lives in Leeds near the station."),
            ("assistant", "The train to York takes half an hour."),
        )
    )
    assert text == (
        "User: My sister Emma lives in Leeds near the station. "
        "Assistant: The train to York takes half an hour."
    )


async def test_a_long_sentence_is_shown_in_part() -> None:
    text = await summary(spoken(("user", "I need a word " + "and another word " * 200)))
    assert text.endswith("…")
    assert len(text.split()) <= 31


@pytest.mark.parametrize("said", [[], spoken(("user", "👍"), ("assistant", "🙂 !!"))])
async def test_without_words_it_says_so(said: list[Said]) -> None:
    assert await summary(said) == "There were no words."


async def test_merged_they_keep_who_said_what_and_what_tells_most() -> None:
    text = await summary(
        earlier(
            "User: I moved from Leeds to York in March. Ok. Assistant: Shall I go on?",
            "User: That is nice. I have a dog named Rex.",
            "The user asked for a vet in York, and the assistant named two.",
        )
    )
    assert "User: I moved from Leeds to York in March." in text
    assert "I have a dog named Rex." in text
    assert text.endswith("The user asked for a vet in York, and the assistant named two.")


async def test_dates_of_earlier_summaries_are_not_counted_anew() -> None:
    assert (
        await summary(earlier("User: I fly tomorrow (2026-01-02).")) == "User: I fly tomorrow (2026-01-02)."
    )


async def test_merging_over_and_over_stays_within_bounds() -> None:
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
            assert len(summaries[0].split()) <= MOST_WORDS + 10
            assert place in summaries[0], "the newest is among them"


ROLES = st.sampled_from(["user", "assistant", "tool", "system"])


@given(st.lists(st.tuples(ROLES, st.text(max_size=400)), max_size=8))
@settings(deadline=None)
async def test_of_any_text_there_is_a_summary_within_bounds(turns: list[tuple[Role, str]]) -> None:
    text = await summary(spoken(*turns))
    assert text.strip()
    assert len(text) <= 9 * MOST_WORDS + 8 * len("Пользователь: ")
    assert await summary(spoken(*turns)) == text
