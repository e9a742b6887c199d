"""English expressions for an end: "until Friday", "through 14 May", "for two weeks"."""

import re
from typing import Final

from mnemon_consumers.domain.policy.expiry.vocabulary import ExpiryLanguage
from mnemon_consumers.domain.policy.wording import compile_pattern

_MONTH: Final = "january|february|march|april|may|june|july|august|september|october|november|december"
_SHORT_MONTH: Final = rf"(?:{_MONTH}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?)"
_WEEKDAY: Final = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_DAY: Final = r"(?:the )?\d{1,2}(?:st|nd|rd|th)?"
_NUMBER: Final = r"(?:\d{1,2}|a|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_NO_MORE: Final = r"(?=$|[,)]| (?:and|at|because|but|for|in|on|or|so|then|to|with)\b)"
"""Words that may follow a bare month, year or day; "until June calls" and "till the 1st semester" name no
end."""

_CALENDAR_DAY: Final = rf"(?:{_DAY} (?:of )?{_SHORT_MONTH}|{_SHORT_MONTH} {_DAY})(?:,? 20\d\d)?(?![\w:/])"
_DATE: Final = rf"""
    {_CALENDAR_DAY}|
    (?:{_MONTH}),? 20\d\d\b|
    (?:{_MONTH}|20\d\d){_NO_MORE}|
    20\d\d-\d\d-\d\d\b|
    (?:1[3-9]|2\d|3[01])\.(?:0?[1-9]|1[0-2])\.20\d\d\b|
    (?:(?:next|this|coming) )?(?:{_WEEKDAY})\b|
    (?:the )?day after tomorrow|tomorrow
"""
_END_OF: Final = r"(?:the )?(?:very )?end of (?:the )?"

_END: Final = compile_pattern(
    rf"""
    \b(?:until|till|'til|through|thru) (?:
        (?P<date>{_DATE})|
        (?P<day>the \d{{1,2}}(?:st|nd|rd|th)(?: of (?:the|this) month)?{_NO_MORE})|
        {_END_OF}(?P<date_of_end>(?:{_MONTH})(?: 20\d\d)?|20\d\d)\b|
        (?P<period>next (?:week|month|year)\b|the (?:coming )?weekend\b|
        {_END_OF}(?:(?:this|current|next|coming) )?(?:day|week|weekend|month|year)\b)
    )|
    \bby (?:
        {_END_OF}(?P<date_by>(?:{_MONTH})(?: 20\d\d)?|20\d\d)\b|
        (?P<period_by>{_END_OF}(?:(?:this|current|next|coming) )?(?:week|month|year)\b)
    )|
    \bfrom (?:{_DAY}|{_CALENDAR_DAY}) to (?P<date_range>{_CALENDAR_DAY})|
    \bfor (?:(?:about|another|only|just) )?(?:the next )?(?P<duration>{_NUMBER} (?:days?|weeks?|months?))\b
    """
)

_OTHER_DAY: Final = compile_pattern(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)|{_SHORT_MONTH}|next (?:week|month|year))\b"
)
"""Another day or month in the text, from which a bare day may count: "from the 20th until the 5th"."""

_OBLIGED: Final = compile_pattern(
    r"\b(?:must|(?:has|have|needs?) to|(?:is|am|are|'m|'s) (?:busy|finishing|preparing|working on|writing)|"
    r"^(?:busy|finishing|preparing|working on|writing))\b"
)
"""Words of an obligation, which ends with its period. Without such words, the text may report an event whose
effect lasts: "moves by the end of May"."""

_STATE: Final = compile_pattern(
    r"(?:\b(?:is|am|are|currently|stays|staying)|'m|'s|'re)\b|"
    r"^(?:away|busy|in|off|on|out of|staying|unavailable|visiting)\b"
)

_ABSENCE_OR_DUTY: Final = compile_pattern(
    r"(?:^|\b(?:is|am|are) |'(?:m|s|re) )"
    r"(?:away|on (?:\w+ )?(?:call|duty|holiday|leave|sabbatical|vacation))\b"
)
"""An absence or a duty, which ends with a range of days. Without such words, the range may be that of an
event, and the dates of an event stay the same: "the conference is from 1 to 15 December"."""

_DOUBT: Final = compile_pattern(
    rf"""
    \b(?:not|never|no|nobody|nothing|cannot|without|unless|if)\b|n't\b|
    \b(?:every|each|usually|always|often|sometimes|on weekdays|daily|weekly|monthly|yearly|annually)\b|
    \b(?:deadline|due|birthday|anniversary|born|since|but|then|afterwards|wait(?:s|ed|ing)?|
    count\w* down|has until|have until)\b|
    \b(?:postpon|delay|deferr?|reschedul|push)(?:e|ed|es|ing|s)?\b|
    \b(?:minutes?|hours?|days?|nights?|weeks?|months?|years?|time|long)
    (?: left| to go| remain\w*)? (?:until|till)\b|
    \bfrom (?:{_WEEKDAY}|{_MONTH})(?! \d)\b|
    \b(?:{_WEEKDAY})s? (?:until|till|through|thru|to)\b|
    \bfor [\w ]+ (?:ago|old|long|late|early|of|a|per)\b(?!.* until )|
    \b(?:alive|clean|dating|engaged|in love|married|pregnant|sober|together)\b(?=.* for )|
    \b(?:been|going|goes|flying|flies|leaving|leaves|moving|moves|planning|plans|travel\w*|starting|
    beginning|famous|known|will|next (?:week|month|year)|in (?:{_MONTH})|on (?:{_WEEKDAY}))\b(?=.* for )|
    \bfor .*\b(?:starting|beginning|from|next|in (?:{_MONTH})|on (?:{_WEEKDAY})|later)\b(?!.* until )
    """
)

_PAST: Final = compile_pattern(
    r"""
    \b(?:was|were|had|did|been|went(?! on (?:\w+ )?(?:vacation|holiday|leave|maternity|sabbatical))|came|
    took(?! (?:\w+ ){0,2}(?:leave|off|vacation|holidays?|break|sabbatical))|
    got|left|kept|spent|ran|held|made|said|
    told|gave|wrote|taught|thought|bought|sold|met|slept|felt|sat|stood|wore|drove|flew|ate|drank|began|knew|saw|
    paid|built|sent|lost|found|won|chose|spoke|rode|grew|fell|fought|caught|brought|led|used to)\b
    """
)
_PARTICIPLE: Final = re.compile(r"\b\w{2,}ed\b")
_STATES: Final = re.compile(
    "banned|based|bed|booked|borrowed|closed|employed|enrolled|excused|furloughed|grounded|hospitali[sz]ed|"
    "hundred|insured|need|quarantined|red|rented|seconded|speed|stationed|subscribed|suspended"
)
"""Words in "-ed" that do not tell the past: participles that describe the present, as in "employed at Acme
until December", and other words such as "bed"."""

_BE: Final = re.compile(r"(?:\b(?:is|are|am|be|being|gets?|stays)|'s|'m|'re)(?: \w+)?\s*\Z")


_VERB: Final = compile_pattern(
    r"""
    \b(?:is|am|are|has|have|does|do|can|could|will|would|should|must|may|might)\b|\b(?:i|you|he|she|it|we|they)\b|
    ^\W*(?:the user |user )?(?:(?:also|really|still|usually|only|\w+ly) )*
    (?:\w+(?:[^\Wsui])s|\w+(?:ss|sh|ch|x|z)es|love|like|hate|work|live|want|need|prefer|enjoy|plan)\b
    """
)
"""Words that make a clause a statement of its own: an auxiliary verb, a pronoun, or a verb that begins it."""


def _is_in_past(text: str) -> bool:
    if _PAST.search(text):
        return True
    return any(
        _STATES.fullmatch(match[0]) is None and not _BE.search(text[: match.start()])
        for match in _PARTICIPLE.finditer(text)
    )


def _format_phrase(phrase: str) -> str:
    return " ".join(re.sub(r"\b(?:the|next|this|coming|of)\b(?! day)", "", phrase).split())


LANGUAGE: Final = ExpiryLanguage(
    code="en",
    end=_END,
    mark=re.compile(r"\b(?:until|till|'til)\b"),
    needs={"date_by": _OBLIGED, "period_by": _OBLIGED, "date_range": _ABSENCE_OR_DUTY, "duration": _STATE},
    forbids={"day": _OTHER_DAY},
    doubt=_DOUBT,
    clause=re.compile(r"[,;]|\band\b(?! \w*[^\Ws] \0)|\b(?:while|although)\b|&"),
    verb=_VERB,
    is_in_past=_is_in_past,
    format_phrase=_format_phrase,
    ahead="in",
    next=re.compile(r"\bnext\b"),
    units={
        "day": re.compile(r"\bday\b"),
        "week": re.compile(r"\bweek(?:end)?\b"),
        "month": re.compile(r"\bmonth\b"),
        "year": re.compile(r"\byear\b"),
    },
)
