"""Dates that words name, relative to the day of the message."""

import re
from calendar import monthrange
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_infra.models.language.offline.dates import find_dates, remove_dates, write_dates

SATURDAY = date(2026, 11, 21)

DAYS = st.dates(date(1990, 1, 1), date(2099, 12, 31))


def read(text: str, day: date = SATURDAY, direction: int = 0) -> str:
    return write_dates(text, find_dates(text, day, direction))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("today", "2026-11-21"),
        ("yesterday", "2026-11-20"),
        ("last night", "2026-11-20"),
        ("the day after tomorrow", "2026-11-23"),
        ("two weeks ago", "2026-11-02/2026-11-08"),
        ("a year ago", "2025"),
        ("in 3 days", "2026-11-24"),
        ("in two months", "2027-01"),
        ("last week", "2026-11-09/2026-11-15"),
        ("this weekend", "2026-11-21/2026-11-22"),
        ("next month", "2026-12"),
        ("last year", "2025"),
        ("last Friday", "2026-11-20"),
        ("next Friday", "2026-11-27"),
        ("last Saturday", "2026-11-14"),
        ("послезавтра", "2026-11-23"),
        ("позавчера", "2026-11-19"),
        ("год назад", "2025"),
        ("три дня назад", "2026-11-18"),
        ("через неделю", "2026-11-23/2026-11-29"),
        ("через 2 месяца", "2027-01"),
        ("на прошлой неделе", "2026-11-09/2026-11-15"),
        ("в следующем году", "2027"),
        ("в прошлую пятницу", "2026-11-20"),
        ("в этом месяце", "2026-11"),
    ],
)
def test_words_for_a_date_are_followed_by_the_date(text: str, shown: str) -> None:
    assert read(f"Say {text}, ok") == f"Say {text} ({shown}), ok"


@pytest.mark.parametrize(
    ("text", "ahead", "behind"),
    [
        ("on Monday", "2026-11-23", "2026-11-16"),
        ("in May", "2027-05", "2026-05"),
        ("on May 5th", "2027-05-05", "2026-05-05"),
        ("on the 5th of December", "2026-12-05", "2025-12-05"),
        ("в пятницу", "2026-11-27", "2026-11-20"),
        ("в мае", "2027-05", "2026-05"),
        ("5 декабря", "2026-12-05", "2025-12-05"),
        ("on 5 dec", "2026-12-05", "2025-12-05"),
        ("on Sept. 5th", "2027-09-05", "2026-09-05"),
        ("in Feb", "2027-02", "2026-02"),
        ("5 дек", "2026-12-05", "2025-12-05"),
        ("5 нояб.", "2027-11-05", "2026-11-05"),
    ],
)
def test_date_that_may_be_past_or_future_stays_unless_the_side_is_known(
    text: str, ahead: str, behind: str
) -> None:
    assert read(text) == text
    assert read(text, direction=1) == f"{text} ({ahead})"
    assert read(text, direction=-1) == f"{text} ({behind})"


def test_regular_weekday_is_no_date() -> None:
    assert read("Plays chess on Wednesday evenings", direction=-1) == "Plays chess on Wednesday evenings"


@pytest.mark.parametrize(
    "text",
    [
        "on Mondays",
        "every week",
        "31 февраля",
        "in 0000-00-00",
        "todays",
        "today's news",
        "a few days ago",
        "in a hurry",
        "May I ask",
        "последний год",
        "on 99.99.9999",
    ],
)
def test_other_words_are_not_dates(text: str) -> None:
    assert read(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Leaving on Monday, back on Friday", "Leaving on Monday (2026-11-23), back on Friday (2026-11-27)"),
        ("Leaving on Friday, back on Monday", "Leaving on Friday (2026-11-27), back on Monday (2026-11-30)"),
        (
            "Leaving on Friday, on Monday I fly back",
            "Leaving on Friday (2026-11-27), on Monday (2026-11-30) I fly back",
        ),
        (
            "Leaving on 5 December, back on Monday",
            "Leaving on 5 December (2026-12-05), back on Monday (2026-12-07)",
        ),
        (
            "Leaving tomorrow, returning on Saturday",
            "Leaving tomorrow (2026-11-22), returning on Saturday (2026-11-28)",
        ),
        ("В пятницу лечу, вернусь в среду", "В пятницу (2026-11-27) лечу, вернусь в среду (2026-12-02)"),
        ("В пятницу лечу, в среду обратно", "В пятницу (2026-11-27) лечу, в среду (2026-12-02) обратно"),
    ],
)
def test_weekday_of_a_return_is_counted_from_the_departure(text: str, shown: str) -> None:
    assert read(text, direction=1) == shown


def test_weekday_of_a_departure_in_the_past_is_counted_back_from_the_return() -> None:
    text = "Flew on Friday and came back on Monday"
    assert read(text, direction=-1) == "Flew on Friday (2026-11-13) and came back on Monday (2026-11-16)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Exam on Friday, party on Monday", "Exam on Friday (2026-11-27), party on Monday"),
        (
            "Exam on Friday, will get back to you on Monday",
            "Exam on Friday (2026-11-27), will get back to you on Monday",
        ),
        ("Leaving on Friday, back on Friday", "Leaving on Friday (2026-11-27), back on Friday"),
        ("Leaving next week, back on Monday", "Leaving next week (2026-11-23/2026-11-29), back on Monday"),
        ("Back on Monday, leaving on Friday", "Back on Monday, leaving on Friday (2026-11-27)"),
        ("Вернусь в среду, улетаю в пятницу", "Вернусь в среду, улетаю в пятницу (2026-11-27)"),
    ],
)
def test_weekday_of_which_the_order_is_in_doubt_has_both_days_and_is_not_shown(text: str, shown: str) -> None:
    assert read(text, direction=1) == shown
    doubtful = [span for span in find_dates(text, SATURDAY, 1) if not span.shown]
    assert [(span.last - span.first).days for span in doubtful] == [7]


def test_weekday_that_cannot_be_a_departure_is_shown() -> None:
    text = "Back on Monday and leaving again on Friday"
    assert read(text, direction=1) == "Back on Monday (2026-11-23) and leaving again on Friday (2026-11-27)"


@pytest.mark.parametrize(
    "text",
    ["5 June 2027", "June 5, 2027", "2027-06-05", "05.06.2027", "5 июня 2027", "5 jun. 2027", "5 июн 2027"],
)
def test_an_exact_date_is_known_and_not_repeated(text: str) -> None:
    (span,) = find_dates(text, SATURDAY)
    assert (span.first, span.last, write_dates(text, [span])) == (date(2027, 6, 5), date(2027, 6, 5), text)


def test_a_date_that_is_there_already_is_not_written_twice() -> None:
    once = read("I fly tomorrow and come back in 3 days")
    assert read(once) == once
    assert remove_dates("I fly tomorrow", find_dates("I fly tomorrow", SATURDAY)) == "I fly "


PHRASES = (
    *("today", "tomorrow", "last week", "next weekend", "this month", "last Sunday", "next Monday"),
    *("two years ago", "in ten days", "завтра", "на следующей неделе", "в прошлом месяце", "через год"),
)


@given(DAYS, st.sampled_from(PHRASES))
def test_on_every_day_of_the_calendar_a_date_lies_where_its_words_say(day: date, phrase: str) -> None:
    (span,) = find_dates(f"We met {phrase}.", day)
    assert span.first <= span.last
    if any(word in phrase for word in ("last", "ago", "прошл")):
        assert span.last < day or "year" in phrase
    if any(word in phrase for word in ("next", "tomorrow", "in ten", "завтра", "следующ")):
        assert span.first > day
    if "week" in phrase or "недел" in phrase:
        assert (span.last.weekday(), (span.last - span.first).days) == (6, 1 if "weekend" in phrase else 6)
    if "month" in phrase or "месяц" in phrase:
        assert span.last.day == monthrange(span.first.year, span.first.month)[1]


@given(DAYS, st.integers(1, 99))
def test_days_are_counted_one_by_one(day: date, count: int) -> None:
    (ago,), (ahead,) = find_dates(f"{count} days ago", day), find_dates(f"через {count} дней", day)
    assert (ago.first, ahead.first) == (day - timedelta(days=count), day + timedelta(days=count))


@given(DAYS, st.sampled_from([-1, 0, 1]), st.text("0123456789 .-adinomthsygv", max_size=40))
def test_resolving_dates_keeps_every_word(day: date, direction: int, text: str) -> None:
    assert re.sub(r" \([\d/-]+\)", "", read(text, day, direction)) == text
