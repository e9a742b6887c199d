"""Every message of a conversation is shown, covered by a shown summary, or counted as left out."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon_consumers.retrieve import decide
from mnemon_consumers.retrieve.context.budget import FittedContext, fit_context
from mnemon_consumers.retrieve.context.coverage import (
    CountedMessages,
    find_count_edges,
    has_all_unsummarised,
    is_covered,
)
from mnemon_consumers.retrieve.context.formats import LAYOUTS_BY_LANGUAGE
from mnemon_consumers.retrieve.search.hits import RankedHit
from mnemon_contracts.events.chat import Role
from mnemon_contracts.settings.groups import ContextSettings, Sections, SettingsV1
from mnemon_contracts.settings.language_models import Compaction
from mnemon_infra.database.memory.summaries import StoredSummary
from mnemon_infra.database.memory.user_memory import ConversationView, StoredRow
from mnemon_infra.database.messages.counts import MessageCount
from mnemon_infra.database.messages.lookup import VisibleMessage
from mnemon_infra.models import tokens
from tests.support.hypothesis_profiles import scale_examples

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ROLES: Sequence[Role] = ("user", "assistant", "tool", "system")


def row(seq: int, content: str = "", role: Role = "user", tools: Sequence[Any] | None = None) -> StoredRow:
    sent_at = NOW + timedelta(minutes=seq)
    return StoredRow(seq, f"e{seq}", role, content or f"message {seq}", None, None, tools, sent_at)


def summary(from_seq: int, to_seq: int, text: str = "They spoke.") -> StoredSummary:
    return StoredSummary(from_seq, to_seq, f"s{from_seq}", to_seq, NOW, f"s{from_seq}", text)


def counted(
    rows: Sequence[StoredRow], view: ConversationView, summaries: Sequence[StoredSummary]
) -> CountedMessages:
    """Count the messages before the middle of the view, divided by the summaries, as the database does."""
    if view.complete:
        return CountedMessages()
    below, edges = view.messages[len(view.messages) // 2].seq, [0, *find_count_edges(summaries)]
    counts = [
        MessageCount(edge, sum(edge <= each.seq < following for each in rows if each.seq < below))
        for edge, following in zip(edges, [*edges[1:], 2**62], strict=True)
    ]
    return CountedMessages(below, tuple(edges[1:]), [count for count in counts if count.messages])


def known(
    rows: Sequence[StoredRow],
    summaries: Sequence[StoredSummary] = (),
    read: int = 50,
    hits: Sequence[RankedHit] = (),
) -> decide.ContextSources:
    view = ConversationView("talk", rows[-read:], complete=len(rows) <= read)
    return decide.ContextSources(
        view=view, counted=counted(rows, view, summaries), summaries=summaries, hits=hits
    )


def fitted(
    what: decide.ContextSources,
    values: SettingsV1 | None = None,
    budget: int | None = None,
    form: Any = "messages",
) -> FittedContext:
    values = values or SettingsV1()
    context = decide.build_context(what, values, NOW)
    layout = LAYOUTS_BY_LANGUAGE[context.language][form]
    sections = values.context.sections
    return fit_context(
        context, layout, budget or values.context.budget, sections, tokens.count_tokens, tokens.cut_text
    )


def numbers(of: FittedContext) -> tuple[int, int, int]:
    assert of.coverage is not None
    return of.coverage.shown, of.coverage.summarised, of.coverage.left_out


def compacted(messages: int) -> list[StoredSummary]:
    """Return the summaries that a conversation of `messages` messages has with the default settings."""
    summaries, covered = [], 0
    while messages - covered > Compaction().after_messages:
        summaries.append(summary(covered + 1, covered + Compaction().messages))
        covered += Compaction().messages
        if len(summaries) > Compaction().merge_above:
            summaries = [summary(1, summaries[-2].to_seq), summaries[-1]]
    return summaries


@pytest.mark.parametrize("form", LAYOUTS_BY_LANGUAGE["en"])
@pytest.mark.parametrize("messages", range(1, 61))
def test_with_the_defaults_no_message_is_lost(messages: int, form: str) -> None:
    summaries = compacted(messages)
    shown = fitted(known([row(seq) for seq in range(1, messages + 1)], summaries), form=form)
    covered = summaries[-1].to_seq if summaries else 0
    assert [each.id for each in shown.context.recent] == [
        f"e{seq}" for seq in range(min(covered, max(0, messages - 10)) + 1, messages + 1)
    ]
    hidden = summaries[-4].to_seq if len(summaries) > 3 else 0
    assert numbers(shown) == (messages - covered, covered - hidden, hidden)
    if hidden:
        report = shown.sections["summaries"]
        assert (report.left_out, report.messages_left_out) == (len(summaries) - 3, hidden)
    assert shown.sections["recent"].messages_left_out == 0


def test_messages_without_room_are_counted() -> None:
    shown = fitted(known([row(seq, "дождь " * 30) for seq in range(1, 17)]), budget=300)
    report = shown.sections["recent"]
    assert report.left_out == report.messages_left_out == 16 - report.shown > 0
    assert numbers(shown) == (report.shown, 0, report.left_out)


def test_messages_that_were_not_read_are_counted() -> None:
    rows = [row(seq) for seq in range(1, 501)]
    shown = fitted(known(rows, [summary(1, 60)], read=200))
    report = shown.sections["recent"]
    assert numbers(shown) == (report.shown, 60, 440 - report.shown)
    assert report.left_out == report.messages_left_out == 440 - report.shown


def test_messages_between_two_summaries_are_counted() -> None:
    rows = [row(seq) for seq in range(1, 101)]
    shown = fitted(known(rows, [summary(3, 20), summary(31, 90)]))
    assert numbers(shown) == (10, 18 + 60, 12)
    assert shown.sections["recent"].messages_left_out == 12
    read = fitted(known(rows, [summary(3, 20), summary(31, 90)], read=1000))
    assert numbers(read) == (22, 78, 0), "where there is room for them they are shown"


@pytest.mark.parametrize("read", [50, 100])
@pytest.mark.parametrize("summaries", [[], [summary(1, 60)]])
def test_no_more_recent_messages_than_the_settings_allow(read: int, summaries: list[StoredSummary]) -> None:
    values = SettingsV1(recent_messages=10, context=ContextSettings(recent_limit=30, budget=8000))
    rows = [row(seq) for seq in range(1, 101)]
    shown = fitted(known(rows, summaries, read=read), values)
    assert [each.id for each in shown.context.recent] == [f"e{seq}" for seq in range(71, 101)]
    left_out = 10 if summaries else 70
    assert numbers(shown) == (30, 70 - left_out, left_out)
    report = shown.sections["recent"]
    assert (report.shown, report.left_out, report.messages_left_out) == (30, left_out, left_out)


def test_a_message_found_for_this_turn_is_shown() -> None:
    rows = [row(seq) for seq in range(1, 101)]
    found = [found_message(row(seq), place) for seq, place in ((5, "talk"), (99, "talk"), (7, "elsewhere"))]
    hits = [RankedHit(each.event_id, "messages", each.content, 0.5, NOW, {}, each) for each in found]
    shown = fitted(known(rows, [summary(1, 90)], hits=hits))
    assert [each.id for each in shown.context.conversation] == ["e5", "e7"]
    assert numbers(shown) == (11, 89, 0)


def test_a_message_of_which_only_the_tools_find_room_is_left_out() -> None:
    rows = [row(1, "sunny " * 300, "assistant", [{"name": "weather"}]), row(2, "and tomorrow?")]
    shown = fitted(known(rows), budget=40)
    assert [each.text[:10] for each in shown.context.recent] == ["Tools used", "[2026-03-0"]
    assert numbers(shown) == (1, 0, 1)


def test_blank_message_counts_as_shown() -> None:
    rows = [row(1, " "), row(2), row(3, "\n", "assistant"), row(4)]
    assert numbers(fitted(known(rows))) == (4, 0, 0)


def test_messages_of_disabled_sections_are_counted_as_left_out() -> None:
    off = SettingsV1(context=ContextSettings(summaries=0, sections=Sections(recent=0)))
    shown = fitted(known([row(seq) for seq in range(1, 21)], [summary(1, 6)]), off)
    assert numbers(shown) == (0, 0, 20)
    assert shown.sections["summaries"].messages_left_out == 6
    assert (shown.sections["recent"].left_out, shown.sections["recent"].messages_left_out) == (14, 14)


def test_uncounted_messages_are_not_reported() -> None:
    rows = [row(seq) for seq in range(1, 101)]
    what = decide.ContextSources(view=ConversationView("talk", rows[-50:], complete=False), counted=None)
    assert fitted(what).coverage is None
    assert fitted(what).sections["recent"].messages_left_out is None


@pytest.mark.parametrize(("messages", "whole"), [(50, True), (59, True), (61, False), (100, False)])
def test_unsummarised_messages_are_complete_if_the_view_meets_a_summary(messages: int, whole: bool) -> None:
    rows = [row(seq) for seq in range(1, messages + 1)]
    view = ConversationView("talk", rows[-50:], complete=messages <= 50)
    assert has_all_unsummarised(view, [summary(1, 10)]) is whole


def test_a_count_serves_until_other_summaries_divide_it_or_the_view_leaves_it() -> None:
    rows = [row(seq) for seq in range(1, 201)]
    counted_before = CountedMessages(100, (1, 41, 81), [MessageCount(1, 40), MessageCount(41, 40)])

    def usable(first: int, *summaries: StoredSummary) -> bool:
        view = ConversationView("talk", rows[first - 1 :], complete=False)
        return counted_before.is_usable(view, find_count_edges(summaries))

    halves = summary(1, 40), summary(41, 80)
    assert usable(60, *halves)
    assert usable(100, *halves)
    assert not usable(101, *halves), "messages between the two were never counted"
    assert usable(60, summary(1, 80)), "the summaries became one"
    assert usable(60, *halves, summary(100, 120))
    assert not usable(60, *halves, summary(81, 90))


def found_message(each: StoredRow, conversation: str = "talk") -> VisibleMessage:
    return VisibleMessage(
        each.seq, each.event_id, each.role, each.content, each.name, each.sent_at, conversation
    )


WORDS = st.sampled_from(
    ["", " ", "да", "the weather in Riga", "очень длинное сообщение " * 20, "word " * 400]
)
ROWS = st.lists(
    st.tuples(
        st.integers(1, 4),
        WORDS,
        st.sampled_from(ROLES),
        st.sampled_from([None, None, [{"name": "weather"}, {"name": "search"}]]),
    ),
    max_size=40,
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[StoredRow], list[StoredSummary], list[RankedHit]]:
    rows, seq = [], 0
    for step, content, role, tools in draw(ROWS):
        seq += step
        rows.append(row(seq, role=role, tools=tools)._replace(content=content))
    bounds = sorted(draw(st.sets(st.integers(1, max(2, seq)), max_size=8)))
    ranges = zip(bounds[::2], bounds[1::2], strict=False)
    summaries = [summary(low, high, draw(WORDS) or "They spoke.") for low, high in ranges]
    found = draw(st.lists(st.sampled_from(rows), max_size=4, unique_by=lambda each: each.seq)) if rows else []
    hits = [
        RankedHit(each.event_id, "messages", each.content, 0.5, NOW, {}, found_message(each))
        for each in found
        if each.content.strip()
    ]
    return rows, summaries, hits


SETTINGS = st.builds(
    SettingsV1,
    recent_messages=st.integers(1, 20),
    context=st.builds(
        ContextSettings,
        summaries=st.integers(0, 4),
        conversation_hits=st.integers(0, 3),
        current_time=st.booleans(),
        sections=st.builds(
            Sections,
            recent=st.sampled_from([0, 50, 1000]),
            summaries=st.sampled_from([0, 30, 250]),
            conversation=st.sampled_from([0, 300]),
        ),
    ),
)


@pytest.mark.long
@settings(max_examples=scale_examples(300))
@given(
    conversation=conversations(),
    values=SETTINGS,
    budget=st.integers(1, 80) | st.integers(80, 2000),
    read=st.integers(1, 45),
    form=st.sampled_from(list(LAYOUTS_BY_LANGUAGE["en"])),
)
def test_every_message_is_counted_once(
    conversation: tuple[list[StoredRow], list[StoredSummary], list[RankedHit]],
    values: SettingsV1,
    budget: int,
    read: int,
    form: str,
) -> None:
    rows, summaries, hits = conversation
    what = known(rows, summaries, read, hits)
    shown = fitted(what, values, budget, form)
    assert shown.tokens <= budget

    given_items = {each.id for each in (*shown.context.recent, *shown.context.conversation)}
    shown_ranges = shown.context.summaries
    expected = {"shown": 0, "summarised": 0, "left_out": 0}
    for each in rows:
        has_words = bool(each.content.strip())
        texts = [item.text for item in shown.context.recent if item.id == each.event_id]
        is_shown = each.event_id in given_items and (
            not (has_words and each.tool_calls)
            or len(texts) == 2
            or any(item.id == each.event_id for item in shown.context.conversation)
        )
        is_read = what.view is not None and each in what.view.messages
        if is_shown or (is_read and not has_words and not each.tool_calls):
            expected["shown"] += 1
        elif is_covered(each.seq, shown_ranges):
            expected["summarised"] += 1
        else:
            expected["left_out"] += 1
    assert shown.coverage is not None
    assert shown.coverage.model_dump() == expected
    assert sum(expected.values()) == len(rows)
    reports = (shown.sections.get("recent"), shown.sections.get("summaries"))
    assert sum(each.messages_left_out or 0 for each in reports if each) == expected["left_out"]
    for report in shown.sections.values():
        if report.messages_left_out:
            assert report.left_out, "a section that misses messages says that it leaves something out"


@settings(max_examples=scale_examples(100))
@given(messages=st.integers(0, 60), budget=st.integers(60, 3000))
def test_messages_are_shown_newest_first_without_a_gap(messages: int, budget: int) -> None:
    summaries = compacted(messages)
    shown = fitted(known([row(seq) for seq in range(1, messages + 1)], summaries), budget=budget)
    ids = [each.id for each in shown.context.recent]
    assert ids == [f"e{seq}" for seq in range(messages - len(ids) + 1, messages + 1)]
