"""Period of time that a query names, and its closeness to a moment. No I/O, no clock."""

import math
from datetime import MAXYEAR, MINYEAR, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

FADING_OF_DAY: Final = timedelta(days=3)
"""Distance from a short period at which closeness has fallen to 1/e."""

FADING_SHARE: Final = 0.5
"""Distance from a longer period at which closeness has fallen to 1/e, as a share of the period's length."""

FARTHEST: Final = 5.0
"""Distance from which closeness counts as 0, as a multiple of the distance at which it has fallen to 1/e."""

CACHED_YEARS: Final = 10_000
"""Maximum number of pairs of a period and a year whose recurrences a process caches."""


class QueryPeriod(NamedTuple):
    """A period of time that a query names.

    Attributes:
        start: its first moment.
        end: the first moment after it.
        is_yearly: whether the period recurs in every year, as that of "May" without a year does; `start` and
            `end` are then those of one year.
    """

    start: datetime
    end: datetime
    is_yearly: bool = False

    def measure_closeness(self, moment: datetime) -> float:
        """Return the closeness of a moment to the period: 1 inside it, falling to 0 with growing distance.

        A period that recurs has the closeness of its nearest recurrence.
        """
        if not self.is_yearly:
            return _measure_closeness(self.start, self.end, moment)
        year = moment.astimezone(self.start.tzinfo).year
        return max(_measure_closeness(*each, moment) for each in _list_recurrences(self, year))

    def find_latest_recurrence(self, now: datetime) -> tuple[datetime, datetime]:
        """Return start and end of the period or, if it recurs, of the latest recurrence begun by `now`."""
        if not self.is_yearly:
            return self.start, self.end
        recurrences = _list_recurrences(self, now.astimezone(self.start.tzinfo).year)
        return max((each for each in recurrences if each[0] <= now), default=(self.start, self.end))


@lru_cache(maxsize=CACHED_YEARS)
def _list_recurrences(period: QueryPeriod, year: int) -> tuple[tuple[datetime, datetime], ...]:
    """List starts and ends of a yearly period in a year, the year before it and the year after it.

    A period that begins on 29 February does not recur in a year without this day. Without any recurrence, the
    period itself is listed.
    """
    start, end = period.start, period.end
    recurrences = []
    for each in range(max(year - 1, MINYEAR), min(year + 1, MAXYEAR - 1) + 1):
        try:
            shifted = start.replace(year=each)
        except ValueError:
            continue
        try:
            recurrences.append((shifted, end.replace(year=end.year + each - start.year)))
        except ValueError:
            recurrences.append((shifted, end.replace(year=end.year + each - start.year, month=3, day=1)))
    return tuple(recurrences) or ((start, end),)


def _measure_closeness(start: datetime, end: datetime, moment: datetime) -> float:
    if start <= moment < end:
        return 1.0
    distance = start - moment if moment < start else moment - end
    fadings = distance / max(FADING_OF_DAY, (end - start) * FADING_SHARE)
    return math.exp(-fadings) if fadings < FARTHEST else 0.0
