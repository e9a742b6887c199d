"""Holidays that a query may name, and their days in a year. No I/O, no clock."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from enum import IntEnum, auto
from functools import partial
from typing import Final, Literal

from dateutil.easter import EASTER_ORTHODOX, EASTER_WESTERN, easter

from mnemon_consumers.retrieve.search.query.periods.date_range import DateRange


class Holiday(IntEnum):
    """A holiday, or a part of one."""

    CHRISTMAS = auto()
    CHRISTMAS_EVE = auto()
    CHRISTMAS_DAY = auto()
    RUSSIAN_CHRISTMAS = auto()
    """«Рождество», which is Christmas in December or that of the Orthodox Church, on 7 January."""
    NEW_YEAR = auto()
    """The turn of the year: the last day of the year before, and the first of the year."""
    NEW_YEARS_EVE = auto()
    NEW_YEARS_DAY = auto()
    EASTER = auto()
    """From Good Friday to Easter Monday, in the Western churches."""
    EASTER_SUNDAY = auto()
    EASTER_MONDAY = auto()
    RUSSIAN_EASTER = auto()
    """«Пасха», Easter Sunday of the Orthodox Church."""
    THANKSGIVING = auto()
    """Thanksgiving in the United States."""
    HALLOWEEN = auto()
    VALENTINES_DAY = auto()
    MAY_HOLIDAYS = auto()
    """«Майские», from Labour Day to Victory Day."""
    VICTORY_DAY = auto()


def _build_fixed_days(year: int, *, month: int, day: int, days: int = 1) -> DateRange:
    first = date(year, month, day)
    return DateRange(first, first + timedelta(days=days), "day" if days == 1 else "other", is_yearly=True)


def _build_turn_of_year(year: int) -> DateRange:
    return DateRange(date(year - 1, 12, 31), date(year, 1, 2), is_yearly=True)


def _build_days_of_easter(year: int, *, method: Literal[2, 3], offset: int = 0, days: int = 1) -> DateRange:
    first = easter(year, method) + timedelta(days=offset)
    return DateRange(first, first + timedelta(days=days), "day" if days == 1 else "other")


def _build_thanksgiving(year: int) -> DateRange:
    """Return the fourth Thursday of November."""
    latest = date(year, 11, 28)
    day = latest - timedelta(days=(latest.isoweekday() - 4) % 7)
    return DateRange(day, day + timedelta(days=1), "day")


HOLIDAY_DATES: Final[Mapping[Holiday, tuple[Callable[[int], DateRange], ...]]] = {
    Holiday.CHRISTMAS: (partial(_build_fixed_days, month=12, day=24, days=3),),
    Holiday.CHRISTMAS_EVE: (partial(_build_fixed_days, month=12, day=24),),
    Holiday.CHRISTMAS_DAY: (partial(_build_fixed_days, month=12, day=25),),
    Holiday.RUSSIAN_CHRISTMAS: (
        partial(_build_fixed_days, month=1, day=7),
        partial(_build_fixed_days, month=12, day=25),
    ),
    Holiday.NEW_YEAR: (_build_turn_of_year,),
    Holiday.NEW_YEARS_EVE: (partial(_build_fixed_days, month=12, day=31),),
    Holiday.NEW_YEARS_DAY: (partial(_build_fixed_days, month=1, day=1),),
    Holiday.EASTER: (partial(_build_days_of_easter, method=EASTER_WESTERN, offset=-2, days=4),),
    Holiday.EASTER_SUNDAY: (partial(_build_days_of_easter, method=EASTER_WESTERN),),
    Holiday.EASTER_MONDAY: (partial(_build_days_of_easter, method=EASTER_WESTERN, offset=1),),
    Holiday.RUSSIAN_EASTER: (partial(_build_days_of_easter, method=EASTER_ORTHODOX),),
    Holiday.THANKSGIVING: (_build_thanksgiving,),
    Holiday.HALLOWEEN: (partial(_build_fixed_days, month=10, day=31),),
    Holiday.VALENTINES_DAY: (partial(_build_fixed_days, month=2, day=14),),
    Holiday.MAY_HOLIDAYS: (partial(_build_fixed_days, month=5, day=1, days=9),),
    Holiday.VICTORY_DAY: (partial(_build_fixed_days, month=5, day=9),),
}
"""For each holiday, the functions that return its days in a year; several if the name has several readings.

A range is yearly if the holiday has the same dates in every year.
"""

HOLIDAY_NAMES: Final[Mapping[str, Holiday]] = {
    **dict.fromkeys(("christmas", "xmas", "christmas holidays", "christmas break"), Holiday.CHRISTMAS),
    "christmas eve": Holiday.CHRISTMAS_EVE,
    "christmas day": Holiday.CHRISTMAS_DAY,
    "new year": Holiday.NEW_YEAR,
    "new years": Holiday.NEW_YEAR,
    "new year eve": Holiday.NEW_YEARS_EVE,
    "new years eve": Holiday.NEW_YEARS_EVE,
    "new year day": Holiday.NEW_YEARS_DAY,
    "new years day": Holiday.NEW_YEARS_DAY,
    **dict.fromkeys(("easter", "easter holidays", "easter break"), Holiday.EASTER),
    "easter sunday": Holiday.EASTER_SUNDAY,
    "easter monday": Holiday.EASTER_MONDAY,
    "thanksgiving": Holiday.THANKSGIVING,
    "thanksgiving day": Holiday.THANKSGIVING,
    "halloween": Holiday.HALLOWEEN,
    "valentine day": Holiday.VALENTINES_DAY,
    "valentines day": Holiday.VALENTINES_DAY,
    **dict.fromkeys(("рождество", "рождества", "рождеством"), Holiday.RUSSIAN_CHRISTMAS),
    **dict.fromkeys(("новый год", "нового года", "новым годом"), Holiday.NEW_YEAR),
    **dict.fromkeys(("пасху", "пасхи", "пасхой"), Holiday.RUSSIAN_EASTER),
    **dict.fromkeys(("хэллоуин", "хеллоуин", "хэллоуина", "хеллоуина"), Holiday.HALLOWEEN),
    **dict.fromkeys(("майские", "майских", "майские праздники", "майских праздников"), Holiday.MAY_HOLIDAYS),
    **dict.fromkeys(("день победы", "дня победы", "днем победы"), Holiday.VICTORY_DAY),
}
"""Holidays by their names, in lower case, without the `s` after an apostrophe and with «е» for «ё».

Russian names have the cases that a preposition of time takes.
"""
