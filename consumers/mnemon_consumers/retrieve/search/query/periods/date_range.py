"""Ranges of days that a phrase names: days, weeks, months, seasons, years and decades, and parts of them."""

from datetime import date, timedelta
from typing import Literal, NamedTuple, TypeAlias

Unit: TypeAlias = Literal["day", "weekday", "week", "month", "season", "year", "decade", "other"]


class DateRange(NamedTuple):
    """Days that a phrase names.

    Attributes:
        first: the first day.
        after: the day after the last one.
        unit: unit of the range, such as `month`; `other` for parts of a unit, and for several units.
        is_yearly: whether the range recurs in every year, as that of "May" without a year does.
    """

    first: date
    after: date
    unit: Unit = "other"
    is_yearly: bool = False


def build_day(day: date, unit: Unit = "day") -> DateRange:
    """Return one day as a range."""
    return DateRange(day, day + timedelta(days=1), unit)


def build_week(day: date) -> DateRange:
    """Return the days of the week of a day, from Monday on."""
    first = day - timedelta(days=day.weekday())
    return DateRange(first, first + timedelta(days=7), "week")


def build_weekend(day: date) -> DateRange:
    """Return the Saturday and the Sunday of the week of a day."""
    monday = day - timedelta(days=day.weekday())
    return DateRange(monday + timedelta(days=5), monday + timedelta(days=7))


def _build_months(year: int, month: int, count: int, unit: Unit) -> DateRange:
    """Return the days of `count` months from `month` on; a month above 12 or below 1 is in another year."""
    first, after = (
        date(year + (number - 1) // 12, (number - 1) % 12 + 1, 1) for number in (month, month + count)
    )
    return DateRange(first, after, unit)


def build_month(year: int, month: int) -> DateRange:
    """Return the days of a month; a month above 12 or below 1 is in another year."""
    return _build_months(year, month, 1, "month")


def build_season(year: int, season: int) -> DateRange:
    """Return the days of a season, 1 for spring to 4 for winter, that begins in `year`."""
    return _build_months(year, 3 * season, 3, "season")


def build_year(year: int) -> DateRange:
    """Return the days of a year."""
    return _build_months(year, 1, 12, "year")


def build_decade(year: int) -> DateRange:
    """Return the days of the ten years from `year` on."""
    return _build_months(year, 1, 120, "decade")


def set_year(dates: DateRange, year: int) -> DateRange:
    """Return the days of a yearly range, such as a month, in another year."""
    years = year - dates.first.year
    first, after = dates.first.replace(year=year), dates.after.replace(year=dates.after.year + years)
    if dates.unit == "month":
        return build_month(year, first.month)
    return DateRange(first, after, dates.unit)


def cut_date_range(dates: DateRange, number: int, parts: int) -> DateRange:
    """Return part `number`, from 0 on, of `parts` equal parts of a range, in whole months or whole days."""
    months = {"decade": 120, "year": 12, "season": 3}.get(dates.unit, 0)
    if months and months % parts == 0:
        count = months // parts
        part = _build_months(dates.first.year, dates.first.month + number * count, count, "other")
        return part._replace(is_yearly=dates.is_yearly)
    days = (dates.after - dates.first).days
    first, after = (
        dates.first + timedelta(days=round(days * place / parts)) for place in (number, number + 1)
    )
    return DateRange(first, after, "other", dates.is_yearly)
