"""English and Russian words of dates, and the split of a text into them. No I/O, no clock."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from mnemon_consumers.retrieve.search.query.periods.holidays import HOLIDAY_NAMES, Holiday
from mnemon_infra.models import months


class WordKind(StrEnum):
    """Role of a word in a date, as one character, so that a grammar can match a text's roles by patterns."""

    OTHER = "."
    STOP = "|"
    """Punctuation other than commas, dashes, quotation marks and apostrophes."""
    COMMA = ","
    DASH = "-"
    ARTICLE = "a"
    THE = "t"
    DATE = "D"
    """A numeric date; the value is a tuple of its possible dates."""
    ISO_MONTH = "E"
    """`2024-01`; the value is year and month."""
    SEVERAL_YEARS = "R"
    """`2023-2024`, `2023/24`; the value is the first and the last year."""
    DECADE = "="
    """`2010s`, «2010-х»; the value is the first year."""
    YEAR = "Y"
    ORDINAL_YEAR = "5"
    """A Russian year with its ending, which is no other number: «2020-м»."""
    NUMBER = "N"
    NUMERAL = "V"
    """A number in words: `two`."""
    ONE_AND_A_HALF = "1"
    FEW = "Q"
    ROUGHLY = "~"
    """«больше» (more than) before a single unit: «больше месяца назад» (more than a month ago)."""
    AROUND = "!"
    """`around`, «около», «под»: "around 2020", «около месяца назад» (about a month ago)."""
    ORDINAL = "O"
    DAY_OF_MONTH = "4"
    """«числа», after the number of a day: «14 числа прошлого месяца» (the 14th of last month)."""
    RECENT = "6"
    """`other`, as in "the other day"."""
    RECENT_DAYS = "7"
    """«днях» after «на»: «на днях» (the other day)."""
    BIRTH = "*"
    """«рождения», after which days are birthdays."""
    MONTH = "M"
    AMBIGUOUS_MONTH = "A"
    """A month whose name is also another word or, written like this, a given name."""
    SHORT_MONTH = "m"
    RUSSIAN_MONTH = "Z"
    SEASON = "S"
    SEASONS = "%"
    IN_SEASON = "I"
    """A Russian season in the instrumental, which is an adverb of time: «летом» (in summer)."""
    WEEKDAY = "K"
    RUSSIAN_WEEKDAY = "L"
    SHORT_WEEKDAY = "0"
    """`Wed`, «ср»."""
    WEEKDAYS = "2"
    """Several days of one name: `Mondays`."""
    HOLIDAY = "&"
    """A holiday; the value is a `Holiday`."""
    NAMED_DAY = "r"
    """A day relative to today; the value is the distance in days."""
    PART_OF_DAY = "G"
    NIGHTS = "+"
    """Several nights or other parts of days: "two nights ago"."""
    DAY_UNIT = "d"
    """`day`, `days`; the value of this and the longer units is 1 for a single unit, and 0 for several.

    «Дня», «месяца» and «года» count as single: a number or «нескольких» (several) tells where they are not.
    """
    WEEK_UNIT = "w"
    FORTNIGHT = "8"
    """Two weeks, with the values of DAY_UNIT."""
    MONTH_UNIT = "n"
    YEAR_UNIT = "y"
    TIME_UNIT = "u"
    """Hours and minutes; the value is the number of minutes in a unit."""
    WEEKEND = "W"
    WEEKENDS = "J"
    HALF = "h"
    HALF_YEAR = "H"
    LAST = "l"
    """`last`; the value is a distance in units: -1. THIS has 0, NEXT has 1."""
    BEFORE_LAST = "q"
    """«позапрошлый», the one before last, with the value -2."""
    THIS = "s"
    NEXT = "x"
    PREVIOUS = "<"
    """`previous`: "the previous year" does not mean the year up to now, unlike "the last year"."""
    PAST = "p"
    """`past`, «последний» (last): the units that end now, as in "the past two weeks"."""
    COMING = ">"
    """`coming`, «ближайший» (nearest): the units that begin now, and the first Friday after today."""
    AGO = "g"
    BACK = "3"
    """`back`, which means `ago` after a counted unit: "two weeks back"."""
    NOW = "o"
    BEFORE = "B"
    """`before`, with the value -1, or `after`, with the value 1."""
    EDGE = "e"
    """A part of a period: 0 is its beginning, 1 its middle, 2 its end."""
    RUSSIAN_EDGE = "c"
    AFTER_TIME = "j"
    """«через» before a length of time: «через неделю», in a week."""
    IN = "i"
    ON = "P"
    """`on`, `at`, «в», «на»."""
    OF = "f"
    FROM = "F"
    FROM_OR_SINCE = "z"
    """«с» and «со» (from, since), which begin a period up to now if no end follows."""
    TO = "T"
    UNTIL = "U"
    """`until`, `through`, «по»; the value is -1 for «до», which also means "before", else 0."""
    DURING = "X"
    SINCE = "C"
    """`since`, which begins a period up to now."""
    BETWEEN = "b"
    AND = "k"
    EVERY = "v"
    """A word after which a weekday is not one certain day: `every`, or `black` as in "Black Friday"."""
    POSSESSIVE = "9"
    """`s` after an apostrophe: "in Jan's car" names no month."""


Meaning: TypeAlias = int | tuple[int, int] | tuple[tuple[int, int, int], ...]
"""Value of a word: a number, two numbers, or the possible dates (year, month, day) of a numeric date."""


class DateWord(NamedTuple):
    """Role of a word in dates, value of the word, and the word as written; a mark has no text."""

    kind: WordKind
    value: Meaning = 0
    text: str = ""


_KIND: Final = WordKind

_TOKEN: Final = re.compile(
    r"""
    (?P<word>[^\W\d]\w*)|
    (?P<iso>(?<![\w.,/-])[0-9]{4}(?:-[0-9]{1,2}-[0-9]{1,2}|/[0-9]{1,2}/[0-9]{1,2})(?![0-9/-]))|
    (?P<dotted>(?<![\w.,/-])(?:[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}|[0-9]{2}\.[0-9]{2}\.[0-9]{2})(?!\w|[.,][0-9]))|
    (?P<slashed>(?<![\w.,/-])[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}(?![\w/]))|
    (?P<iso_month>(?<![\w.,/-])[0-9]{4}-(?:0[1-9]|1[0-2])(?![\w-]))|
    (?P<years>(?<![\w.,/-])(?:19|20)[0-9]{2}(?:\s?[-/–—]\s?(?:19|20)[0-9]{2}|[-/–—][0-9]{2})(?![\w/-]))|
    (?P<other>(?![0-9]{1,2},(?:19|20)[0-9]{2}(?![\w.,:/]))[0-9]+(?:[.,:/][0-9]+)+)|
    (?P<decade>(?:19|20)[0-9]0(?:s|-[хе])(?!\w))|
    (?P<ordinal>[0-9]{1,2}(?:st|nd|rd|th|-?(?:го|ое|е|й|ый|я|ая|ю|ую))(?!\w))|
    (?P<year>(?:19|20)[0-9]{2}-(?:го|м|му|й)(?!\w))|
    (?P<digits>(?:19|20)[0-9]{2}(?=гг?\b)|\w+)|
    (?P<mark>[^\w\s])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WORDS: Final = frozenset({"word", "digits"})
_MARKS: Final = {
    ",": _KIND.COMMA,
    **dict.fromkeys("-–—‑", _KIND.DASH),
    **dict.fromkeys("'’\"“”«»", None),  # Quotation marks and apostrophes separate no words of a date.
}
_YEAR: Final = re.compile("(?:19|20)[0-9]{2}")
_NUMBER: Final = re.compile("[0-9]{1,3}")
_CENTURY: Final = 2000

_TENS: Final = {"twenty": 20, "thirty": 30, "двадцать": 20, "тридцать": 30}
_AFTER_MAY: Final = """
i you we he she it they not be have also only well never still even or
"""
_WORDS_AFTER_MAY: Final = frozenset(_AFTER_MAY.split())
"""Words that show that `may` before them is a verb."""

_AFTER_BACK: Final = """
i we you he she it they my our your his her their its the a an this that these those
in on at to from with about for by of as during before after when while where because
and or but so who which what did do does was were is are had has have
"""
_WORDS_AFTER_BACK: Final = frozenset(_AFTER_BACK.split())
"""Words that may follow `back` in the meaning of `ago`, as in "two weeks back with Anna"; after another word,
as in "a week back pain", it has another meaning."""

_BEFORE_THEME: Final = """
interested interest interests believe believes believed trust trusts trusted faith confidence
confide confides confided disappointed
"""
_WORDS_BEFORE_THEME: Final = frozenset(_BEFORE_THEME.split())
"""Words after which `in` is no preposition of time: "interested in Jan"."""

_HOLIDAY_WORDS: Final = frozenset(word for name in HOLIDAY_NAMES for word in (name, name.partition(" ")[0]))
"""Names of holidays, and words with which one may begin: the word after them decides whether it is one."""

_ATTRIBUTIVE: Final = frozenset(
    name
    for name, holiday in HOLIDAY_NAMES.items()
    if name.isascii() or holiday in (Holiday.MAY_HOLIDAYS, Holiday.VICTORY_DAY)
)
"""Holidays whose names mean another thing before a noun: "Christmas party", «майские жуки» (May bugs)."""

_AFTER_HOLIDAY: Final = """
я ты он она мы вы они мой моя мои у с со из для при если когда где куда что кто
"""
_WORDS_AFTER_HOLIDAY: Final = _WORDS_AFTER_BACK.union(_AFTER_HOLIDAY.split())
"""Words that may follow a holiday; before another word, as in "Easter eggs", it is a part of a name."""

_NAMESAKES: Final = frozenset(["марта", "марте", "марту", "мая", "мае", "маю"])
"""Forms of Russian months that, with a capital letter, are given names: «Марта» (Martha)."""

_NO_NAMESAKES: Final = frozenset([("в", "марте"), ("в", "мае")])
"""Prepositions with months that are no given names, even with a capital letter: «в Марте» (in March)."""


def _map_words(kind: WordKind, value: Meaning, words: str) -> dict[str, DateWord]:
    """Map words to a role and a value."""
    return dict.fromkeys(words.split(), DateWord(kind, value))


def _map_forms(kind: WordKind, *texts: str) -> dict[str, DateWord]:
    """Map the words of each text to the number of the text, from 1; each text lists forms of one word."""
    return {
        word: meaning
        for number, text in enumerate(texts, 1)
        for word, meaning in _map_words(kind, number, text).items()
    }


def _map_series(kind: WordKind, words: str) -> dict[str, DateWord]:
    """Map each word to its number, from 1 on."""
    return _map_forms(kind, *words.split())


def _inflect_stems(stems: str, endings: str) -> Iterator[str]:
    """Yield the forms of each stem, as one text."""
    for stem in stems.split():
        yield " ".join(stem + ending for ending in endings.split())


_ADJECTIVE: Final = "ый ой ого ому ым ом ое ая ую"
_SOFT_ADJECTIVE: Final = "ий яя ее ие его ей ему юю им ем их"
_SOFT_NOUN: Final = "ь я е ю ем"
_AMBIGUOUS: Final = frozenset({"march", "april", "may", "june", "august"})

_LEXICON: Final[Mapping[str, DateWord]] = {
    **_map_words(_KIND.ARTICLE, 1, "a an"),
    # «Тому» adds nothing to «год тому назад».
    **_map_words(_KIND.THE, 0, "the тому"),
    **_map_series(_KIND.NUMERAL, "one two three four five six seven eight nine ten eleven twelve"),
    **_map_forms(
        _KIND.NUMERAL,
        "один одна одно одну одной одного",
        "два две двух двумя",
        "три трех",
        "четыре четырех",
        *_inflect_stems("пят шест сем восем девят десят одиннадцат двенадцат", "ь и ью"),
    ),
    **_map_words(_KIND.NUMERAL, 8, "восьми"),
    **_map_words(_KIND.ONE_AND_A_HALF, 1, "полтора полторы полутора"),
    **_map_words(_KIND.FEW, 2, "couple пара пару пары"),
    **_map_words(_KIND.FEW, 3, "few several несколько нескольких"),
    **_map_words(_KIND.ROUGHLY, 1, "больше более меньше менее"),
    **_map_words(_KIND.AROUND, 1, "around circa около под"),
    **_map_series(
        _KIND.ORDINAL,
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
        "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
    ),
    **_map_forms(
        _KIND.ORDINAL,
        *_inflect_stems("перв втор", _ADJECTIVE),
        "третий третьего третьему третьим третьем третье третья третьей третью",
        *_inflect_stems(
            "четверт пят шест седьм восьм девят десят одиннадцат двенадцат тринадцат четырнадцат "
            "пятнадцат шестнадцат семнадцат восемнадцат девятнадцат двадцат",
            _ADJECTIVE,
        ),
    ),
    **_map_words(_KIND.ORDINAL, 30, "thirtieth тридцатый тридцатого тридцатое тридцатом"),
    **_map_words(_KIND.DAY_OF_MONTH, 0, "числа числу"),
    **_map_words(_KIND.RECENT, 0, "other"),
    **_map_words(_KIND.BIRTH, 0, "рождения"),
    **{
        name.lower(): DateWord(_KIND.AMBIGUOUS_MONTH if name.lower() in _AMBIGUOUS else _KIND.MONTH, number)
        for number, name in enumerate(months.ENGLISH, 1)
    },
    **{
        name[:3].lower(): DateWord(_KIND.SHORT_MONTH, number)
        for number, name in enumerate(months.ENGLISH, 1)
        if name != "May"
    },
    **_map_words(_KIND.SHORT_MONTH, 9, "sept"),
    **_map_series(_KIND.SHORT_MONTH, "янв фев мар апр май июн июл авг сен окт ноя дек"),
    **_map_words(_KIND.SHORT_MONTH, 2, "февр"),
    **_map_words(_KIND.SHORT_MONTH, 9, "сент"),
    **_map_words(_KIND.SHORT_MONTH, 11, "нояб"),
    **_map_forms(
        _KIND.RUSSIAN_MONTH,
        *_inflect_stems("январ феврал", _SOFT_NOUN),
        "март марта марте марту мартом",
        *_inflect_stems("апрел", _SOFT_NOUN),
        "май мая мае маю маем",
        *_inflect_stems("июн июл", _SOFT_NOUN),
        "август августа августе августу августом",
        *_inflect_stems("сентябр октябр ноябр декабр", _SOFT_NOUN),
    ),
    **_map_forms(_KIND.SEASON, "spring", "summer", "autumn fall", "winter"),
    **_map_forms(
        _KIND.SEASON, "весна весны весну весне", "лето лета лету лете", "осень осени", "зима зимы зиму зиме"
    ),
    **_map_series(_KIND.SEASONS, "springs summers autumns winters"),
    **_map_forms(_KIND.IN_SEASON, "весной весною", "летом", "осенью", "зимой зимою"),
    **_map_series(_KIND.WEEKDAY, "monday tuesday wednesday thursday friday saturday sunday"),
    # "Sat" and "sun" are also other words.
    **_map_forms(_KIND.SHORT_WEEKDAY, "mon", "tue tues", "wed", "thu thur thurs", "fri"),
    **_map_series(_KIND.SHORT_WEEKDAY, "пн вт ср чт пт сб вс"),
    **_map_series(_KIND.WEEKDAYS, "mondays tuesdays wednesdays thursdays fridays saturdays sundays"),
    **_map_forms(
        _KIND.WEEKDAYS, "понедельников", "вторников", "сред", "четвергов", "пятниц", "суббот", "воскресений"
    ),
    # «Среда» and «среде» mean an environment more often than a day.
    **_map_forms(
        _KIND.RUSSIAN_WEEKDAY,
        "понедельник понедельника понедельнику понедельником",
        "вторник вторника вторнику вторником",
        "среду среды",
        "четверг четверга четвергу четвергом",
        "пятница пятницу пятницы пятнице пятницей",
        "суббота субботу субботы субботе субботой",
        "воскресенье воскресенья воскресенью воскресеньем",
    ),
    **{name: DateWord(_KIND.HOLIDAY, holiday) for name, holiday in HOLIDAY_NAMES.items()},
    **_map_words(_KIND.NAMED_DAY, -2, "позавчера"),
    **_map_words(_KIND.NAMED_DAY, -1, "yesterday вчера"),
    **_map_words(_KIND.NAMED_DAY, 0, "today tonight сегодня"),
    **_map_words(_KIND.NAMED_DAY, 1, "tomorrow завтра"),
    **_map_words(_KIND.NAMED_DAY, 2, "послезавтра"),
    **{
        word: DateWord(_KIND.NAMED_DAY, days)
        for days, forms in enumerate(_inflect_stems("вчерашн сегодняшн завтрашн", _SOFT_ADJECTIVE), -1)
        for word in forms.split()
    },
    **_map_words(
        _KIND.PART_OF_DAY,
        0,
        "night evening morning afternoon ночь ночью вечер вечером утро утром",
    ),
    **_map_words(_KIND.NIGHTS, 0, "nights evenings mornings afternoons ночи ночей вечера вечеров"),
    **_map_words(_KIND.DAY_UNIT, 1, "day день дня"),
    **_map_words(_KIND.DAY_UNIT, 0, "days дней дню дне днем дни днях"),
    **_map_words(_KIND.WEEK_UNIT, 1, "week wk неделя неделю неделе неделей недельку"),
    **_map_words(_KIND.WEEK_UNIT, 0, "weeks wks недели недель неделям неделях"),
    **_map_words(_KIND.FORTNIGHT, 1, "fortnight"),
    **_map_words(_KIND.FORTNIGHT, 0, "fortnights"),
    **_map_words(_KIND.MONTH_UNIT, 1, "month месяц месяца месяце месяцу месяцем"),
    **_map_words(_KIND.MONTH_UNIT, 0, "months месяцы месяцев месяцам месяцах"),
    **_map_words(_KIND.YEAR_UNIT, 1, "year yr год года году годом г"),
    **_map_words(_KIND.YEAR_UNIT, 0, "years yrs годы годов годах лет гг"),
    **_map_words(_KIND.TIME_UNIT, 60, "hour hours hr hrs час часа часов"),
    **_map_words(_KIND.TIME_UNIT, 1, "minute minutes min mins минуту минуты минут"),
    **_map_words(_KIND.TIME_UNIT, 30, "полчаса"),
    **_map_words(_KIND.WEEKEND, 0, "weekend выходные выходных"),
    **_map_words(_KIND.WEEKENDS, 0, "weekends"),
    **_map_words(_KIND.HALF, 0, "half половина половины половине половину половиной"),
    **_map_words(_KIND.HALF_YEAR, 1, "полгода"),
    **_map_words(
        _KIND.LAST,
        -1,
        "last прошлый прошлая прошлое прошлые прошлого прошлой прошлому прошлую прошлым "
        "прошлом прошлых "
        "минувший минувшая минувшее минувшие минувшего минувшей минувшую минувшим минувшем минувших",
    ),
    **_map_words(_KIND.PREVIOUS, -1, "previous"),
    **_map_words(
        _KIND.BEFORE_LAST,
        -2,
        "позапрошлый позапрошлая позапрошлое позапрошлого позапрошлой позапрошлую позапрошлым "
        "позапрошлом позапрошлые позапрошлых",
    ),
    **_map_words(
        _KIND.THIS,
        0,
        "this current этот эта это этого этой эту этим этом эти этих "
        "текущий текущая текущего текущей текущую текущем текущим",
    ),
    **_map_words(
        _KIND.NEXT,
        1,
        "next следующий следующая следующее следующие следующего следующей следующую следующим "
        "следующем следующих будущий будущая будущее будущего будущей будущую будущим будущем",
    ),
    **_map_words(
        _KIND.PAST,
        -1,
        "past последний последняя последнее последние последнего последней последнюю последнем "
        "последним последних "
        "прошедший прошедшая прошедшее прошедшие прошедшего прошедшей прошедшую прошедшем прошедших",
    ),
    **_map_words(
        _KIND.COMING,
        1,
        "coming upcoming ближайший ближайшая ближайшее ближайшие ближайшего ближайшей ближайшую ближайшем "
        "ближайших",
    ),
    **_map_words(_KIND.AGO, 0, "ago назад"),
    **_map_words(_KIND.BACK, 0, "back"),
    **_map_words(_KIND.NOW, 0, "now"),
    **_map_words(_KIND.BEFORE, -1, "before перед"),
    **_map_words(_KIND.BEFORE, 1, "after после"),
    **_map_words(_KIND.EDGE, 0, "beginning start early"),
    **_map_words(_KIND.EDGE, 1, "middle mid"),
    **_map_words(_KIND.EDGE, 2, "end late"),
    **_map_words(_KIND.RUSSIAN_EDGE, 0, "начало начале начала началу"),
    **_map_words(_KIND.RUSSIAN_EDGE, 1, "середина середине середины середину"),
    **_map_words(_KIND.RUSSIAN_EDGE, 2, "конец конце конца концу"),
    **_map_words(_KIND.AFTER_TIME, 0, "через"),
    **_map_words(_KIND.IN, 0, "in"),
    **_map_words(
        _KIND.ON,
        0,
        "on at over within в во на за о об про к ко",
    ),
    **_map_words(_KIND.OF, 0, "of"),
    **_map_words(_KIND.FROM, 0, "from от"),
    **_map_words(_KIND.FROM_OR_SINCE, 0, "с со"),
    **_map_words(_KIND.TO, 0, "to"),
    **_map_words(_KIND.UNTIL, 0, "until till through по"),
    **_map_words(_KIND.UNTIL, -1, "до"),
    **_map_words(_KIND.DURING, 0, "by during throughout"),
    **_map_words(_KIND.SINCE, 0, "since"),
    **_map_words(_KIND.BETWEEN, 0, "between между"),
    **_map_words(_KIND.AND, 0, "and и"),
    **_map_words(
        _KIND.EVERY, 0, "every each any black good каждый каждую каждое каждой каждого черная черную"
    ),
    **_map_words(_KIND.POSSESSIVE, 0, "s"),
}


def split_date_words(text: str) -> list[DateWord]:
    """Return the words and the punctuation of a text with their roles in dates."""
    words: list[DateWord] = []
    tens = 0
    before = ""
    for match in _TOKEN.finditer(text):
        written = match[0]
        if match.lastgroup == "mark":
            kind = _MARKS.get(written, _KIND.STOP)
            is_abbreviated = written == "." and bool(words) and words[-1].kind is _KIND.SHORT_MONTH
            if kind is not None and not is_abbreviated:
                words.append(DateWord(kind))
                tens, before = tens if kind is _KIND.DASH else 0, ""
            continue
        plain = written.lower().replace("ё", "е")
        is_verb = before == "may" and plain in _WORDS_AFTER_MAY
        if is_verb or (before == "back" and plain not in _WORDS_AFTER_BACK):
            words[-1] = words[-1]._replace(kind=_KIND.OTHER)
        word = _read_word(plain) if match.lastgroup in _WORDS else _read_number(match, plain)
        if before in _HOLIDAY_WORDS and (name := _extend_holiday(words, before, word, written)):
            before = name
            continue
        if plain == "in" and before in _WORDS_BEFORE_THEME:
            word = DateWord(_KIND.OTHER)
        elif (before, plain) == ("на", "днях"):
            word = DateWord(_KIND.RECENT_DAYS)
        elif plain in _NAMESAKES and written[0].isupper() and (before, plain) not in _NO_NAMESAKES:
            word = word._replace(kind=_KIND.AMBIGUOUS_MONTH)
        before = plain
        if tens and word.kind is _KIND.ORDINAL and isinstance(word.value, int) and word.value < 10:
            while words[-1].kind is _KIND.DASH:
                words.pop()
            words[-1] = DateWord(_KIND.ORDINAL, tens + word.value, f"{words[-1].text} {written}")
        else:
            words.append(word._replace(text=written))
        tens = _TENS.get(plain, 0)
    return words


def _extend_holiday(words: list[DateWord], name: str, word: DateWord, written: str) -> str | None:
    """Join a word to the holiday at the end of `words`, as "Eve" to "New Year's", and return the new name.

    A noun that does not belong to the name, such as that of "Christmas party", ends the role of the holiday.
    """
    if word.kind is _KIND.POSSESSIVE:
        words.append(word._replace(text=written))
        return name
    place = -2 if words[-1].kind is _KIND.POSSESSIVE else -1
    plain = written.lower().replace("ё", "е")
    longer = f"{name} {plain}"
    if longer in HOLIDAY_NAMES:
        joined = " ".join(each.text for each in words[place:])
        words[place:] = [_LEXICON[longer]._replace(text=f"{joined} {written}")]
        return longer
    if name in _ATTRIBUTIVE and word.kind is _KIND.OTHER and plain not in _WORDS_AFTER_HOLIDAY:
        words[place] = words[place]._replace(kind=_KIND.OTHER)
    return None


def _read_word(plain: str) -> DateWord:
    if _YEAR.fullmatch(plain):
        return DateWord(_KIND.YEAR, int(plain))
    if _NUMBER.fullmatch(plain):
        return DateWord(_KIND.NUMBER, int(plain))
    return _LEXICON.get(plain, DateWord(_KIND.OTHER))


def _read_number(match: re.Match[str], plain: str) -> DateWord:
    numbers = [int(each) for each in re.findall("[0-9]+", plain)]
    match match.lastgroup:
        case "iso":
            year, month, day = numbers
            return DateWord(_KIND.DATE, ((year, month, day),))
        case "dotted":
            day, month, year = numbers
            return DateWord(_KIND.DATE, ((year if year > 99 else _CENTURY + year, month, day),))
        case "slashed":
            first, second, year = numbers
            # `21/01` and `01/21` name the same day; `03/05` is read both ways.
            readings = dict.fromkeys(((year, second, first), (year, first, second)))
            return DateWord(_KIND.DATE, tuple(each for each in readings if each[1] <= 12))
        case "iso_month":
            return DateWord(_KIND.ISO_MONTH, (numbers[0], numbers[1]))
        case "years":
            first, last = numbers
            is_short = last <= 99
            last = first // 100 * 100 + last if is_short else last
            if last == first + 1 or (first < last and not is_short):
                return DateWord(_KIND.SEVERAL_YEARS, (first, last))
        case "decade":
            return DateWord(_KIND.DECADE, numbers[0])
        case "year":
            return DateWord(_KIND.ORDINAL_YEAR, numbers[0])
        case "ordinal":
            return DateWord(_KIND.ORDINAL, numbers[0])
    return DateWord(_KIND.OTHER)
