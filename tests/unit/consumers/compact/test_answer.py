"""Answers of models: accepted as summaries, or rejected with a reason."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.compact.answer import (
    MOST_CHARACTERS,
    MOST_WORDS,
    SummaryRejection,
    check_summary,
    correct_request,
)
from mnemon_consumers.compact.prompt import INSTRUCTIONS, build_message_request, build_summary_request
from mnemon_contracts.events.chat import Role
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction
from mnemon_infra.database.memory.summaries import StoredSummary
from mnemon_infra.database.messages.message_ranges import SpokenRow
from mnemon_infra.models.language.port import ModelAnswer, Usage

AT = datetime(2026, 3, 13, 18, 2, tzinfo=UTC)
LONG_MESSAGE = "I went to York by train and saw " + ", ".join(f"the {n}th house" for n in range(40))
SETTINGS = SettingsV1(compaction=Compaction(instructions="Always mention the names of all pets of the user."))


def spoken(seq: int, role: Role, content: str) -> SpokenRow:
    return SpokenRow(seq, f"e{seq}", role, content, None, None, None, None, AT)


REQUEST = build_message_request(
    [spoken(1, "user", LONG_MESSAGE), spoken(2, "assistant", "What a trip! Shall I book a hotel?")], SETTINGS
)


def check(text: str, *, is_cut: bool = False) -> str | SummaryRejection:
    return check_summary(ModelAnswer(text, Usage(), is_cut), REQUEST)


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("  They talked\n\n about  tea. ", "They talked about tea."),
        ("Summary: They talked.", "They talked."),
        ("**Summary:** They talked.", "They talked."),
        ("Краткое содержание: Говорили о чае.", "Говорили о чае."),
        ('"They talked."', "They talked."),
        ("«Говорили о чае.»", "Говорили о чае."),
        ('"Tea" and "coffee"', '"Tea" and "coffee"'),
        ("<think>What was it?\nTea.</think>\nThey talked.", "They talked."),
        ("What was it? Tea.</think>They talked.", "They talked."),
        ("They spoke of <think> tags.", "They spoke of <think> tags."),
        ("Summary of the trip: they went by train.", "Summary of the trip: they went by train."),
        ("Итоги поездки: ехали поездом.", "Итоги поездки: ехали поездом."),
        ("[2026-03-13] User: I like tea.", "[2026-03-13] User: I like tea."),
        ("Surely the user moved to York.", "Surely the user moved to York."),
        ("Хорошо знает Python.", "Хорошо знает Python."),
        ("The user asked: where is York?", "The user asked: where is York?"),
        ("Okay, Vera's dog, is ill.", "Okay, Vera's dog, is ill."),
        ("OK, the user's bank, raised its fees.", "OK, the user's bank, raised its fees."),
        ("Sorry for the delay was said; they met.", "Sorry for the delay was said; they met."),
        ("Unfortunately Vera's dog is ill.", "Unfortunately Vera's dog is ill."),
        ("No meat is eaten at Vera's home.", "No meat is eaten at Vera's home."),
        ("None of them likes tea.", "None of them likes tea."),
        ("As an AI engineer the user works in York.", "As an AI engineer the user works in York."),
        ("К сожалению, собака Веры больна.", "К сожалению, собака Веры больна."),
        ("Как ИИ-инженер пользователь много ездит.", "Как ИИ-инженер пользователь много ездит."),
        ("Нет мяса в доме Веры, она вегетарианка.", "Нет мяса в доме Веры, она вегетарианка."),
    ],
)
def test_a_summary_is_kept_on_one_line_without_label_thoughts_and_quotation_marks(
    answer: str, kept: str
) -> None:
    assert check(answer) == kept


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("...", "empty"),
        ('""', "empty"),
        ("Summary:", "empty"),
        ("<think>What was it? Tea. So it is", "empty"),
        ("  <thinking>\nWhat was it?\n\nTea.", "empty"),
        ("Here is a summary: They talked.", "preamble"),
        ("Here's a brief summary of the conversation:\n\nThey talked.", "preamble"),
        ("Sure! The user moved to York.", "preamble"),
        ("**Here is the summary**\nThey talked.", "preamble"),
        ("Certainly, here are two sentences: They talked.", "preamble"),
        ("Below is the summary you asked for. They talked.", "preamble"),
        ("This is a short summary: They talked.", "preamble"),
        ("Summary of the conversation: They talked.", "preamble"),
        ("I have summarized the conversation. They talked.", "preamble"),
        ("The conversation in short:\nThey talked.", "preamble"),
        ("They talked. Let me know if you need anything else!", "preamble"),
        ("Вот краткое содержание: Говорили о чае.", "preamble"),
        ("Вот краткое содержание беседы.\nГоворили о чае.", "preamble"),
        ("Конечно! Вот резюме диалога:\nГоворили о чае.", "preamble"),
        ("Хорошо, говорили о чае.", "preamble"),
        ("Ниже приведено краткое изложение. Говорили о чае.", "preamble"),
        ("Краткое содержание разговора: Говорили о чае.", "preamble"),
        ("Резюме нашей беседы: Говорили о чае.", "preamble"),
        ("Говорили о чае. Если нужно подробнее, обращайтесь!", "preamble"),
        ("Okay, here is the summary: They talked.", "preamble"),
        ("OK, here you go: they talked.", "preamble"),
        ("Okay! They talked.", "preamble"),
        ("# Summary\nThey talked.", "preamble"),
        ("## Резюме\n\nГоворили о чае.", "preamble"),
        ("# The trip\nThey talked.", "preamble"),
        ("I cannot help with that request.", "no_summary"),
        ("I can’t assist with this.", "no_summary"),
        ("I'm sorry, but as an AI language model I can't summarize this.", "no_summary"),
        ("I'm sorry, I can't help.", "no_summary"),
        ("Sorry, but I am unable to do that.", "no_summary"),
        ("Unfortunately, I cannot do that.", "no_summary"),
        ("I apologize, but this cannot be summarized.", "no_summary"),
        ("No summary available.", "no_summary"),
        ("There is no summary.", "no_summary"),
        ("There is nothing to summarize.", "no_summary"),
        ("N/A", "no_summary"),
        ("None.", "no_summary"),
        ("As an AI, I do not keep secrets.", "no_summary"),
        ("As an AI language model, I have no view.", "no_summary"),
        ("Извините, я не могу помочь с этим.", "no_summary"),
        ("К сожалению, я не могу этого сделать.", "no_summary"),
        ("К сожалению, невозможно составить резюме.", "no_summary"),
        ("Я не могу выполнить этот запрос.", "no_summary"),
        ("Как языковая модель, я не имею мнения.", "no_summary"),
        ("Нет данных для резюме.", "no_summary"),
        ("Резюме отсутствует.", "no_summary"),
        ("The user's password is hunter2Zebra!", "secret"),
        ("Пароль пользователя от почты: hunter2Zebra!", "secret"),
        ("```text\nThey talked.\n```", "fence"),
        ("```\nГоворили о чае.\n```", "fence"),
        ("They talked.\n```", "fence"),
        ("<summary>They talked.</summary>", "fence"),
        ('{"summary": "They talked."}', "json"),
        ('["They talked."]', "json"),
        ('{"summary": "They tal', "json"),
        ('{"резюме": "Говорили о чае."}', "json"),
        (REQUEST.text, "echo"),
        (INSTRUCTIONS[:300], "echo"),
        ("The user said to always mention the names of all pets of the user.", "echo"),
        (LONG_MESSAGE[:300], "echo"),
        ("user: I went to York assistant: What a trip!", "echo"),
        ("1. [2026-03-13 18:02 Friday] user: I went to York", "echo"),
        ("and so on " * 40, "too_long"),
        ("и так далее " * 40, "too_long"),
        ("用户谈到了茶。" * 500, "too_long"),
    ],
)
def test_answer_beyond_a_summary_is_rejected(answer: str, reason: str) -> None:
    rejected = check(answer)
    assert isinstance(rejected, SummaryRejection)
    assert rejected.reason == reason
    assert rejected.explanation


@pytest.mark.parametrize("text", ["The user moved to", "Пользователь переехал в", "<think>It is", ""])
def test_truncated_answer_is_rejected(text: str) -> None:
    assert check(text, is_cut=True) == SummaryRejection("cut_off")


def test_merged_summary_may_repeat_the_newest_one() -> None:
    newest = " ".join(f"The user saw the {n}th house." for n in range(12))
    stored = [StoredSummary(1, 6, "e6", 6, AT, "s1", newest)]
    request = build_summary_request(stored, SETTINGS)
    assert check_summary(ModelAnswer(newest, Usage()), request) == newest
    assert check_summary(ModelAnswer(request.text, Usage()), request) == SummaryRejection("echo")


def test_second_request_names_the_reason_of_rejection() -> None:
    again = correct_request(REQUEST, SummaryRejection("json"))
    assert again.text.startswith(REQUEST.text)
    assert "it is JSON" in again.text
    assert again.instructions == REQUEST.instructions, "what a provider caches stays the same"


@given(st.text(), st.booleans())
def test_accepted_summary_is_one_line_within_bounds(answer: str, is_cut: bool) -> None:
    kept = check(answer, is_cut=is_cut)
    if isinstance(kept, SummaryRejection):
        return
    assert kept == " ".join(kept.split())
    assert len(kept) <= MOST_CHARACTERS
    assert len(kept.split()) <= MOST_WORDS
    assert any(character.isalnum() for character in kept)
