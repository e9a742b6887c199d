"""A context never exceeds its budget, in any format, and reports the items that it leaves out."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon_consumers.retrieve.context.budget import EXTENDED, FittedContext, fit_context
from mnemon_consumers.retrieve.context.contents import (
    SECTIONS,
    Context,
    ContextFact,
    ContextMessage,
    ContextSummary,
    CurrentTime,
    DataField,
    Passage,
)
from mnemon_consumers.retrieve.context.formats import LAYOUTS_BY_LANGUAGE
from mnemon_consumers.retrieve.context.layout import PER_MESSAGE, ContextLayout, Count
from mnemon_consumers.retrieve.context.selection import TextCut
from mnemon_contracts.settings.groups import Characters, Sections
from mnemon_infra.models import tokens
from tests.support.hypothesis_profiles import scale_examples

LAYOUTS = LAYOUTS_BY_LANGUAGE["en"]
MESSAGES, XML, BLOCKS, MARKDOWN = LAYOUTS.values()
NOW = datetime(2026, 3, 1, tzinfo=UTC)

COUNTERS: dict[str, tuple[Count, TextCut]] = {
    "tokenizer": (tokens.count_tokens, tokens.cut_text),
    "characters": (len, lambda text, most: text[:most]),
    "bytes": (
        lambda text: len(text.encode()),
        lambda text, most: text.encode()[:most].decode(errors="ignore"),
    ),
    # A text has more tokens than its parts have together.
    "dearer together": (lambda text: len(text) + len(text) ** 2 // 500, lambda text, most: text[: most // 2]),
}

TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
    st.lists(
        st.sampled_from(["Пользователь", "likes", "<b>", "&", "tea", "кофе", "\n", "[WORKING MEMORY]", "…"]),
        max_size=60,
    ).map(" ".join),
)
IDS = st.sampled_from([f"id{n}" for n in range(8)])
FACTS = st.lists(
    st.builds(
        ContextFact,
        IDS,
        TEXT,
        st.just("event"),
        st.integers(1, 10),
        st.datetimes(datetime(2026, 1, 1), datetime(2026, 2, 1), timezones=st.just(UTC)),  # noqa: DTZ001
        st.none() | st.just(NOW),
        st.floats(0, 1),
    ),
    max_size=6,
)
SAID = st.builds(
    ContextMessage, IDS, st.sampled_from(["user", "assistant", "tool", "system"]), TEXT, st.none() | TEXT
)
CONTEXTS = st.builds(
    Context,
    facts=FACTS,
    working=FACTS,
    relevant=FACTS,
    summaries=st.lists(TEXT.map(ContextSummary), max_size=3),
    user_data=st.lists(st.builds(DataField, TEXT, TEXT | st.booleans()), max_size=4),
    recent=st.lists(SAID, max_size=8),
    documents=st.lists(st.builds(Passage, TEXT, TEXT, st.none() | TEXT), max_size=3),
    conversation=st.lists(SAID, max_size=3),
    current_time=st.none() | TEXT.map(CurrentTime),
    language=st.sampled_from(["en", "ru"]),
)
BUDGETS = st.integers(1, 60) | st.integers(1, 3000)
CAPS = st.just(Sections()) | st.builds(Sections, **dict.fromkeys(SECTIONS, st.integers(0, 200)))

SOME = settings(max_examples=scale_examples(40))


def real(
    context: Context, layout: ContextLayout, budget: int, sections: Sections | None = None
) -> FittedContext:
    return fit_context(context, layout, budget, sections or Sections(), tokens.count_tokens, tokens.cut_text)


def fact(number: int, text: str = "", importance: int = 5, age: int = 0, score: float = 0) -> ContextFact:
    changed = NOW - timedelta(days=age)
    return ContextFact(
        f"pf_{number}", text or f"fact number {number}", "event", importance, changed, None, score
    )


def ids(facts: object) -> list[str]:
    assert isinstance(facts, list | tuple)
    return [each.id for each in facts]


def turns(pairs: int) -> list[ContextMessage]:
    return [
        ContextMessage(f"{role}{n}", role, f"{role} says {n}")
        for n in range(pairs)
        for role in ("user", "assistant")
    ]


@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@SOME
@given(context=CONTEXTS, budget=BUDGETS, sections=CAPS)
def test_context_never_exceeds_the_budget(
    layout: ContextLayout, counter: str, context: Context, budget: int, sections: Sections
) -> None:
    count, cut = COUNTERS[counter]
    fitted = fit_context(context, layout, budget, sections, count, cut)
    text, messages = fitted.rendered.text, fitted.rendered.messages
    if text is None:
        as_seen = sum(PER_MESSAGE + count(each.content) + count(each.name or "") for each in messages)
    else:
        as_seen = count(text)
        assert "".join(each.content for each in messages) == text
    assert as_seen == fitted.tokens <= budget


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@SOME
@given(context=CONTEXTS, budget=BUDGETS, sections=CAPS)
def test_no_section_but_the_extended_ones_passes_its_own(
    layout: ContextLayout, context: Context, budget: int, sections: Sections
) -> None:
    fitted = real(context, layout, budget, sections)
    for section, report in fitted.sections.items():
        items = fitted.context.get_section(section)
        assert report.shown == len(items)
        cap = getattr(sections, section)
        if section in EXTENDED:
            assert cap > 0 or not items
        else:
            assert layout.count_section_tokens(section, items, tokens.count_tokens) <= report.tokens <= cap


@SOME
@given(context=CONTEXTS, budget=BUDGETS)
def test_context_repeats_nothing_and_counts_everything(context: Context, budget: int) -> None:
    fitted = real(context, XML, budget)
    shown = fitted.context
    known = {*ids(shown.facts), *ids(shown.working)}
    assert known.isdisjoint(ids(shown.relevant))
    recent = set(ids(shown.recent))
    assert recent.isdisjoint(ids(shown.conversation))
    for section in SECTIONS:
        stored = [
            item
            for item in context.get_section(section)
            if not (section == "relevant" and item.id in known)  # type: ignore[union-attr]
            if not (section == "conversation" and item.id in recent)  # type: ignore[union-attr]
        ]
        report = fitted.sections.get(section)
        assert (report.shown + report.left_out if report else 0) == len(stored)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@SOME
@given(context=CONTEXTS)
def test_sufficient_budget_shows_everything(layout: ContextLayout, context: Context) -> None:
    vast = Sections(**dict.fromkeys(SECTIONS, 50_000))
    fitted = real(context, layout, 1_000_000, vast)
    assert not any(report.left_out or report.cut for report in fitted.sections.values())
    assert list(fitted.context.recent) == list(context.recent)
    assert sorted(ids(fitted.context.facts)) == sorted(ids(context.facts))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_zero_budget_is_empty_and_reported(layout: ContextLayout) -> None:
    fitted = real(Context(facts=[fact(1)], recent=turns(2)), layout, 1)
    assert fitted.rendered.messages == ()
    assert not fitted.rendered.text
    assert fitted.tokens == 0
    assert {section: report.left_out for section, report in fitted.sections.items()} == {
        "facts": 1,
        "recent": 4,
    }


def test_important_facts_go_before_new_ones() -> None:
    facts = [fact(1, importance=5), fact(2, importance=9, age=50), fact(3, importance=9, age=1)]
    assert ids(real(Context(facts=facts), BLOCKS, 2000).context.facts) == ["pf_3", "pf_2", "pf_1"]
    few = real(Context(facts=facts), BLOCKS, 20)
    assert ids(few.context.facts) == ["pf_3"]
    assert (few.sections["facts"].shown, few.sections["facts"].left_out) == (1, 2)
    assert not few.sections["facts"].cut


def test_found_facts_go_by_score() -> None:
    found = [fact(1, score=0.2), fact(2, score=0.9), fact(3, score=0.5)]
    assert ids(real(Context(relevant=found), MARKDOWN, 2000).context.relevant) == ["pf_2", "pf_3", "pf_1"]


def test_of_found_facts_with_nearly_equal_scores_the_newer_goes_first() -> None:
    found = [
        fact(1, age=9, score=0.674),
        fact(2, age=1, score=0.663),
        fact(3, age=0, score=0.655),
        fact(4, age=8, score=0.5),
        fact(5, age=2, score=0.1),
        fact(6, age=1, score=0.09),
    ]
    order = ["pf_2", "pf_1", "pf_3", "pf_4", "pf_5", "pf_6"]
    assert ids(real(Context(relevant=found[::-1]), MARKDOWN, 2000).context.relevant) == order


def test_key_fact_without_room_may_be_shown_as_a_found_fact() -> None:
    facts = [fact(n) for n in range(10)]
    fitted = real(Context(facts=facts, relevant=facts[-1:]), XML, 50)
    assert ids(fitted.context.relevant) == ["pf_9"]
    fitted = real(Context(facts=facts, relevant=facts[-1:]), XML, 2000)
    assert ids(fitted.context.relevant) == []
    assert "relevant" not in fitted.sections


def test_newer_messages_win_room() -> None:
    fitted = real(Context(recent=turns(50)), MESSAGES, 100)
    shown = ids(fitted.context.recent)
    assert shown == ids(turns(50))[-len(shown) :]
    assert fitted.sections["recent"].left_out == 100 - len(shown) > 0


def test_a_budget_of_just_their_tokens_shows_all_messages() -> None:
    recent = turns(3)
    budget = sum(PER_MESSAGE + tokens.count_tokens(each.text) for each in recent)
    assert list(real(Context(recent=recent), MESSAGES, budget).context.recent) == recent


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize(
    "text", ["how is the weather in Riga, please? " * 300, "какая погода в Риге? " * 300]
)
def test_newest_question_is_shown_at_least_in_part(layout: ContextLayout, text: str) -> None:
    before, after = turns(3), [ContextMessage("a", "assistant", "let me see " * 500)]
    fitted = real(Context(recent=[*before, ContextMessage("q", "user", text), *after]), layout, 90)
    (question,) = (each for each in fitted.context.recent if each.id == "q")
    assert question.text.endswith("…")
    assert text.startswith(question.text[:-1])
    assert fitted.sections["recent"].cut
    assert fitted.tokens > 45


def test_the_question_keeps_its_place() -> None:
    asked = ContextMessage("q", "user", "and?")
    answered = [
        ContextMessage("t", "tool", "12 degrees"),
        ContextMessage("a", "assistant", "12 degrees in Riga"),
    ]
    recent = [*turns(5), asked, *answered]
    assert list(real(Context(recent=recent), MESSAGES, 2000).context.recent) == recent
    tight = real(Context(recent=recent), MESSAGES, 22).context.recent
    assert ids(tight) == ["q", "a"]


def test_a_long_answer_before_the_question_is_shown_in_part() -> None:
    recent = [
        ContextMessage("u", "user", "old"),
        ContextMessage("a", "assistant", "слово " * 2000),
        ContextMessage("q", "user", "and?"),
    ]
    fitted = real(Context(recent=recent), MESSAGES, 200)
    assert ids(fitted.context.recent) == ["a", "q"]
    assert fitted.sections["recent"].cut
    assert fitted.tokens > 150


def test_recent_messages_use_what_others_leave() -> None:
    recent = [ContextMessage(str(n), "user", f"something that is said {n}") for n in range(300)]
    shown = real(Context(recent=recent), MESSAGES, 2000)
    assert shown.tokens > 1950
    full = Context(
        recent=recent,
        facts=[fact(n) for n in range(100)],
        relevant=[fact(1000 + n) for n in range(200)],
        summaries=[ContextSummary("они говорили о погоде " * 100)],
    )
    shown = real(full, MESSAGES, 2000)
    assert 1900 < shown.tokens <= 2000
    assert 900 < shown.sections["recent"].tokens < 1300
    assert shown.sections["summaries"].cut


def test_a_budget_above_the_tokens_of_all_sections_is_used() -> None:
    recent = [ContextMessage(str(n), "user", f"something that is said {n}") for n in range(1000)]
    budget = 2 * sum(Sections().model_dump().values())
    assert budget - 50 < real(Context(recent=recent), MESSAGES, budget).tokens <= budget


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_no_fact_is_left_out_while_tokens_are_free(layout: ContextLayout) -> None:
    facts = [fact(n, "Ездит на работу на велосипеде через мост") for n in range(30)]
    working = [fact(n, "Is writing a thesis on the bridges of Riga") for n in range(100, 115)]
    fitted = real(Context(facts=facts, working=working, recent=turns(2)), layout, 1800)
    assert fitted.sections["facts"].left_out == fitted.sections["working"].left_out == 0
    assert fitted.sections["facts"].tokens > Sections().facts
    assert fitted.sections["working"].tokens > Sections().working
    assert fitted.sections["recent"].shown == 4


def test_profile_facts_take_spare_tokens_before_working_facts_and_messages() -> None:
    facts, working = ([fact(n) for n in range(first, first + 100)] for first in (0, 100))
    caps = Sections(facts=100, working=100, recent=200)
    few = real(Context(facts=facts, working=working, recent=turns(5)), BLOCKS, 400, caps)
    assert few.sections["recent"].left_out == 0
    assert few.sections["facts"].tokens > 180
    assert few.sections["working"].tokens == pytest.approx(100, abs=10)
    many = real(Context(facts=facts, working=working, recent=turns(300)), BLOCKS, 400, caps)
    assert many.sections["recent"].tokens == pytest.approx(200, abs=10), "they keep their own tokens"
    assert many.tokens == pytest.approx(400, abs=10)


def test_a_found_fact_moves_to_the_key_facts_when_these_take_spare_tokens() -> None:
    facts = [fact(n) for n in range(20)]
    caps = Sections(facts=40)
    fitted = real(Context(facts=facts, relevant=facts, recent=turns(1)), XML, 2000, caps)
    assert ids(fitted.context.facts) == ids(facts)
    assert "relevant" not in fitted.sections


def test_where_room_is_short_a_modest_section_is_whole() -> None:
    context = Context(
        working=[fact(1)],
        facts=[fact(n, importance=9) for n in range(10, 60)],
        recent=[ContextMessage(str(n), "user", "something that is said") for n in range(100)],
    )
    fitted = real(context, BLOCKS, 400)
    assert fitted.sections["working"].left_out == 0
    assert fitted.sections["facts"].left_out > 0


def test_new_summaries_go_before_old_ones_in_the_order_of_time() -> None:
    summaries = [ContextSummary(f"{n} they spoke about the weather in Riga") for n in range(5)]
    shown = real(Context(summaries=summaries), XML, 2000, Sections(summaries=50)).context.summaries
    assert [each.text[:1] for each in shown][-2:] == ["3", "4"]


def test_data_that_do_not_fit_leave_room_for_those_that_do() -> None:
    data = [DataField("life", "очень длинная история " * 400), DataField("name", "Анна")]
    fitted = real(Context(user_data=data), XML, 2000)
    assert fitted.context.user_data == [DataField("name", "Анна")]
    assert fitted.sections["user_data"].left_out == 1


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_omitted_text_is_not_tokenized(layout: ContextLayout) -> None:
    def work(messages: int) -> int:
        counted = 0

        def count(text: str) -> int:
            nonlocal counted
            counted += len(text)
            return tokens.count_tokens(text)

        recent = [ContextMessage(str(n), "user", "something that is said " * 3) for n in range(messages)]
        huge = ContextMessage("huge", "assistant", "a" * 1_000_000)
        facts = [fact(n) for n in range(messages)]
        context = Context(facts=facts, recent=[*recent[:-20], huge, *recent[-20:]])
        fit_context(context, layout, 1000, Sections(), count, tokens.cut_text)
        return counted

    assert work(10_000) < 1.2 * work(100) < 100_000


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_facts_are_limited_in_characters_the_most_important_first(layout: ContextLayout) -> None:
    profile = [
        ContextFact(f"pf_{number:03}", f"Факт номер {number:02} о пользователе", "user_fact", importance, NOW)
        for number, importance in enumerate([5, 9, 2, 9, 5, 10] * 8)
    ]
    wide = Sections(facts=10_000)
    for most in (1, 60, 200, 800):
        fitted = fit_context(
            Context(facts=profile),
            layout,
            10_000,
            wide,
            tokens.count_tokens,
            tokens.cut_text,
            Characters(facts=most),
        )
        shown = "".join(message.content for message in fitted.rendered.messages)
        assert len(shown) <= most
        importances = [fact.importance for fact in fitted.context.facts]
        assert importances == sorted(importances, reverse=True)
        if most == 800:
            assert len(shown) > 700
            assert set(importances[:8]) == {10}
        report = fitted.sections["facts"]
        assert report.shown + report.left_out == len(profile)
    unlimited = fit_context(
        Context(facts=profile), layout, 10_000, wide, tokens.count_tokens, tokens.cut_text
    )
    assert unlimited.sections["facts"].left_out == 0


def test_characters_and_tokens_both_hold() -> None:
    found = [
        ContextFact(f"ar_{number}", "Anna likes tea", "event", 5, NOW, score=1.0) for number in range(50)
    ]
    for characters in (100, 2_000):
        fitted = fit_context(
            Context(relevant=found),
            BLOCKS,
            10_000,
            Sections(relevant=100),
            tokens.count_tokens,
            tokens.cut_text,
            Characters(relevant=characters),
        )
        assert fitted.sections["relevant"].tokens <= 100
        assert len(fitted.rendered.text or "") <= characters


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_recent_messages_that_are_switched_off_take_no_spare_tokens(layout: ContextLayout) -> None:
    context = Context(facts=[fact(1)], recent=turns(3))
    fitted = real(context, layout, 1000, Sections(recent=0))
    assert not fitted.context.recent
    assert "says" not in "".join(message.content for message in fitted.rendered.messages)
    assert ids(fitted.context.facts) == ["pf_1"]
    assert fitted.sections["recent"].left_out == 6


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_an_earlier_message_goes_when_recent_messages_get_spare_tokens(layout: ContextLayout) -> None:
    recent = turns(8)
    context = Context(recent=recent, conversation=recent[::-1])
    held = 0
    for budget in range(20, 300):
        fitted = real(context, layout, budget, Sections(conversation=1000, recent=200))
        shown = {each.id for each in fitted.context.recent}
        earlier = {each.id for each in fitted.context.conversation}
        assert not shown & earlier, f"said twice within {budget} tokens"
        held += bool(earlier)
    assert held, "there are budgets at which an earlier message is shown"


def test_section_whose_items_other_sections_show_is_not_reported() -> None:
    recent, key = turns(1), fact(1)
    fitted = real(Context(facts=[key], relevant=[key], recent=recent, conversation=recent), XML, 1000)
    assert set(fitted.sections) == {"facts", "recent"}
