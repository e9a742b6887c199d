"""Windows of a conversation, and the times at which they are due."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.extract.decide import WindowCut, cut_windows
from mnemon_consumers.extract.message_selection import is_worth_reading
from mnemon_contracts.settings.language_models import Extraction
from mnemon_infra.database.messages.uncovered_messages import MessageOutline

NOW = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)
IDLE = timedelta(seconds=60)
LONG_AGO = NOW - timedelta(days=1)
SETTINGS = Extraction(after_messages=4, window_messages=6)


def row(seq: int, beginning: str = "I live in York", *, at: datetime = NOW, **fields: Any) -> MessageOutline:
    outline = MessageOutline(seq, "user", beginning, True, None, False, at)
    return outline._replace(**fields)


def rows(count: int, at: datetime = NOW) -> list[MessageOutline]:
    return [row(10 * number, at=at) for number in range(1, count + 1)]


def ranges(made: WindowCut) -> list[tuple[int, int, int]]:
    return [(each.from_seq, each.to_seq, len(each.messages)) for each in made.ranges]


def test_empty_conversation_has_no_window() -> None:
    assert cut_windows([], NOW, SETTINGS, all_due=True) == WindowCut((), None)


def test_resting_conversation_is_read() -> None:
    assert ranges(cut_windows(rows(2, NOW - IDLE), NOW, SETTINGS)) == [(10, 20, 2)]


def test_active_conversation_is_due_when_it_rests() -> None:
    at = NOW - timedelta(seconds=20)
    assert cut_windows(rows(3, at), NOW, SETTINGS) == WindowCut((), at + IDLE)


def test_enough_messages_make_a_window_at_once() -> None:
    assert cut_windows(rows(4), NOW, SETTINGS).check_at is None
    assert ranges(cut_windows(rows(4), NOW, SETTINGS)) == [(10, 40, 4)]


def test_messages_beyond_a_window_wait() -> None:
    made = cut_windows(rows(9), NOW, SETTINGS)
    assert ranges(made) == [(10, 60, 6)]
    assert made.check_at == NOW + IDLE
    assert ranges(cut_windows(rows(10), NOW, SETTINGS)) == [(10, 60, 6), (70, 100, 4)]


def test_interval_reads_active_conversations() -> None:
    assert ranges(cut_windows(rows(1), NOW, SETTINGS, all_due=True)) == [(10, 10, 1)]


def test_fewer_than_enough_do_not_fill_small_requests() -> None:
    small = Extraction(after_messages=5, window_messages=2)
    assert cut_windows(rows(4), NOW, small).ranges == ()
    assert ranges(cut_windows(rows(5), NOW, small)) == [(10, 20, 2), (30, 40, 2)]


def test_unreadable_messages_belong_to_a_window_uncounted() -> None:
    tool = [row(seq, role="tool", at=LONG_AGO) for seq in (1, 2, 25, 26, 99)]
    messages = sorted([*rows(7, LONG_AGO), *tool])
    made = cut_windows(messages, NOW, SETTINGS)
    assert ranges(made) == [(1, 60, 6), (70, 99, 1)]
    assert all(message.role == "user" for each in made.ranges for message in each.messages)


def test_window_without_readable_messages_is_marked() -> None:
    messages = [row(seq, role="tool", at=LONG_AGO) for seq in range(1, 20)]
    assert ranges(cut_windows(messages, NOW, SETTINGS)) == [(1, 19, 0)]
    assert cut_windows([row(1, role="tool")], NOW, SETTINGS) == WindowCut((), NOW + IDLE)


def test_only_slightly_fast_clocks_are_trusted() -> None:
    ahead = NOW + timedelta(seconds=30)
    assert cut_windows(rows(1, ahead), NOW, SETTINGS) == WindowCut((), ahead + IDLE)
    assert ranges(cut_windows(rows(1, NOW + timedelta(days=400)), NOW, SETTINGS)) == [(10, 10, 1)]


@st.composite
def conversations(draw: st.DrawFn) -> list[MessageOutline]:
    kinds = draw(st.lists(st.sampled_from(["user", "assistant", "tool", "memory", "blank"]), max_size=60))
    seqs = draw(st.lists(st.integers(1, 10**6), min_size=len(kinds), max_size=len(kinds), unique=True))
    ages = draw(st.lists(st.integers(-200, 200), min_size=len(kinds), max_size=len(kinds)))
    made = []
    for seq, kind, age in zip(sorted(seqs), kinds, ages, strict=True):
        special: dict[str, dict[str, Any]] = {
            "memory": {"is_from_memory": True},
            "blank": {"beginning": " "},
        }
        made.append(row(seq, at=NOW - timedelta(seconds=age))._replace(**special.get(kind, {"role": kind})))
    return made


@given(conversations(), st.integers(1, 30), st.integers(1, 30), st.booleans())
def test_windows_are_adjacent_and_hold_readable_messages(
    messages: Sequence[MessageOutline], after: int, size: int, all_due: bool
) -> None:
    limits = Extraction(after_messages=after, window_messages=size)
    made = cut_windows(messages, NOW, limits, all_due=all_due)
    positions = [message.seq for message in messages]
    covered: list[int] = []
    for each in made.ranges:
        inside = [message for message in messages if each.from_seq <= message.seq <= each.to_seq]
        assert inside[0].seq == each.from_seq
        assert inside[-1].seq == each.to_seq
        assert each.messages == [
            message
            for message in inside
            if is_worth_reading(message.role, message.beginning) and not message.is_from_memory
        ]
        assert len(each.messages) <= size
        covered += [message.seq for message in inside]
    assert covered == positions[: len(covered)], "from the beginning, without a gap, nothing twice"
    left = messages[len(covered) :]
    if made.check_at is None:
        assert not left
    else:
        assert left
        assert NOW < made.check_at <= NOW + 2 * IDLE
        assert not all_due
        assert (
            sum(bool(cut_windows([each], NOW, limits, all_due=True).ranges[0].messages) for each in left)
            < after
        )


@given(conversations(), st.integers(1, 30), st.integers(1, 30))
def test_rechecks_at_due_times_read_every_message(
    messages: Sequence[MessageOutline], after: int, size: int
) -> None:
    limits = Extraction(after_messages=after, window_messages=size)
    now, left, looks = NOW, messages, 0
    while left:
        made = cut_windows(left, now, limits)
        left = left[sum(message.seq <= made.ranges[-1].to_seq for message in left) :] if made.ranges else left
        now, looks = made.check_at or now, looks + 1
        assert looks < 4


def test_long_message_without_letters_at_its_beginning_is_read() -> None:
    long = row(10, "-" * 1000, is_whole=False)
    assert ranges(cut_windows([long], NOW, SETTINGS, all_due=True)) == [(10, 10, 1)]
    assert ranges(cut_windows([long._replace(is_whole=True)], NOW, SETTINGS, all_due=True)) == [(10, 10, 0)]
    context = long._replace(beginning="<key_facts>\nLives in York\n</key_facts>")
    assert ranges(cut_windows([context], NOW, SETTINGS, all_due=True)) == [(10, 10, 0)]
