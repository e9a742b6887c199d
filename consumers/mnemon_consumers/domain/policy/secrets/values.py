"""Shapes of the values that a sentence gives for a credential: tokens, quotations, digits, placeholders."""

import re
from functools import lru_cache
from typing import Final

from mnemon_consumers.domain.policy.wording import compile_pattern, split_word_list

DIGIT: Final = re.compile(r"\d")
OPENING: Final = "\"'«“„`‘(["
CLOSING: Final = "\"'»”“`’)]"

QUOTED: Final = re.compile(r"[\"«“„`]([^\"»”“`]{2,60})[\"»”“`]|(?<!\w)['‘]([^'’]{2,60})['’](?!\w)")
PLACEHOLDER: Final = compile_pattern(
    r"""[*•●xх…._-]{3,}|<[^>]*>|\[[^\]]*\]|\{[^}]*\}|\$\{?\w+\}?|redacted|hidden|removed|masked|n/?a|none|
    скрыто?|удал[её]н\w*|нет"""
)
UNIT: Final = compile_pattern(
    r"""[\s-]*(?:(?:or|to|и|или|до|-)\s+\w+\s+)?(?:(?!(?:last|next|this|every|
    each)\s)[\w-]+\s)?(?:characters?|chars?|letters?|digits?|
    symbols?|words?|bits?|
    times?|days?|hours?|minutes?|mins?|seconds?|secs?|weeks?|months?|years?|people|persons?|users?|
    accounts?|
    percent|dollars?|euros?|rubles?|items?|places|attempts?|tries|entries|lines|pages|
    символ\w*|знак\w*|букв\w*|цифр\w*|слов\w*|бит\w*|раз\w*|дн(?:я|ей|ем)|день|час\w*|минут\w*|секунд\w*|
    недел\w*|месяц\w*|лет|год\w*|человек\w*|пользовател\w*|аккаунт\w*|процент\w*|рубл\w*|руб\.?|евро|
    доллар\w*|
    попыт\w+|штук\w*|тысяч\w*|запис(?:ь|и|ей|ям)|строк\w*)(?!\w)|\s*[%$€₽£°]"""
)
"""Words after a number that make it a quantity."""

SERVICES: Final = split_word_list(
    """wifi wi-fi vpn gmail icloud apple netflix google yandex vk telegram whatsapp facebook instagram
    windows mac macbook iphone ipad android root admin administrator ssh bios sudo steam spotify
    youtube github gitlab zoom skype discord slack twitter amazon ebay paypal microsoft outlook
    office id mail email e-mail postgres mysql sql linux ubuntu router app store play market dropbox
    notion jira sim sms pin otp nas smb ftp rdp 1password keepass keepassxc bitwarden lastpass
    enpass dashlane"""
)
"""Names in Latin letters that follow "password" and name the thing that the password opens."""

_TRIMMED: Final = ".,;:!?…" + OPENING + CLOSING
_DATE: Final = re.compile(
    r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2}:\d{2}(?::\d{2})?|(?:19|20)\d\d[-–](?:19|20)?\d\d"
)
_ADDRESS: Final = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.-]+|(?:https?://|www\.)\S+|[\w-]+\.(?:com|ru|org|net|io|de|uk)(?:/\S*)?"
)
_ORDINARY: Final = compile_pattern(
    r"""\d+(?:st|nd|rd|th|s|am|pm|h|hrs?|min|sec|ms|m|km|kg|g|gb|mb|tb|k|x|d|px|е|й|го|му|ая|ой|ые|х|м|кг|
    км|гб|мб|шт|ч|мин|с)|
    1password|\w+-?\d{1,2}(?:st|th)|v?\d+(?:\.\d+)+|[257]g|mp[34]|[23]d|h\d|ipv[46]|2fa|mfa\d?|
    (?:office|windows|win|outlook|iphone|ipad|android|galaxy|pixel|xbox|playstation|ps|python|web|room|
    flat|gate|
    area|level|unit|box|bitrix|битрикс|office-?|microsoft|m|o|catch|forever|канал)-?\d{1,4}|1c|1с|
    covid-?\d+|
    (?:sha|md|aes|rsa|argon|utf|base|win|http|oauth|cp|bcrypt|rot|fido|nfc|u|log)-?\d{1,4}[a-z]?"""
)
_TOKEN: Final = re.compile(r"\S+")
_SYMBOL: Final = re.compile(r"[!@#$%^&*+=~_|\\<>?]")
_DIGIT_WORDS: Final = (
    "zero oh one two three four five six seven eight nine ноль один одна два две три четыре пять шесть семь "
    "восемь девять double дважды"
)
_SPOKEN_DIGIT: Final = rf"(?:{'|'.join(_DIGIT_WORDS.split())})"

_TENS: Final = (
    "(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|двадцать|тридцать|сорок|пятьдесят|шестьдесят|"
    "семьдесят|восемьдесят|девяносто)"
)
_TEEN: Final = (
    "(?:ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|десять|одиннадцать|"
    "двенадцать|тринадцать|четырнадцать|пятнадцать|шестнадцать|семнадцать|восемнадцать|девятнадцать)"
)
SPOKEN_NUMBER: Final = rf"(?>(?:{_TENS}(?:[ -]{_SPOKEN_DIGIT})?|{_TEEN}|{_SPOKEN_DIGIT})(?!\w))"
SPOKEN_NUMBERS: Final = (
    rf"(?:{_SPOKEN_DIGIT}(?:[\s,-]+{_SPOKEN_DIGIT}){{2,}}(?!\w)|"
    rf"(?=[\w ,-]{{0,40}}?(?<!\w)(?:{_TENS}|{_TEEN}))"
    rf"{SPOKEN_NUMBER}(?:(?:\s*,\s*|[\s-]){SPOKEN_NUMBER}){{1,6}}+)"
)
"""Numbers in words, such as a dictated code: "twenty-two forty thirteen", "three five eight"."""


COUNTED: Final = compile_pattern(
    r"""\s(?:new\s|other\s|more\s|different\s|[\w-]+ых\s|[\w-]+их\s)?(?!(?:always|these|sometimes|this|
    works|is|has|was|unless|besides|plus|
    opens|gets|lets|nowadays|mondays|weekdays|weekends|yes)\b)(?:[a-z]{3,}s|people|sheets?|watts?|
    [а-яё]{2,}(?:ов|ев|ей|ек|ок|ий))(?!\w)|
    \sas\s(?!(?:[\w'’]+\s){0,3}?(?:pin|code|passcode|combination|password)\b)"""
)
"""Words after a number, such as a plural noun, that make the number a quantity."""

REPEATED_DIGITS: Final = (
    r"(?:(?:two|three|four|five|six|eight|all)\s(?:zero(?:e?s)?|ones|twos|threes|fours|fives|sixes|sevens|"
    r"eights|"
    r"nines)|(?:три|четыре|пять|шесть|восемь|все)\s(?:нол\w+|нул\w+|единиц\w*|единичк\w*|двойк\w*|двоек|"
    r"тройк\w*|"
    r"троек|четв[её]рк\w*|четв[её]рок|пят[её]рк\w*|пят[её]рок|шест[её]рк\w*|шест[её]рок|сем[её]рк\w*|"
    r"сем[её]рок|восьм[её]рк\w*|восьм[её]рок|девятк\w*|девяток))(?!\w)"
)
"""A repeated digit of a code, in words: "four sevens"."""

HINT: Final = (
    r"(?:(?:nick|sur|maiden\s)?name|birthday|birth\syear|birth\sdate|date\sof\sbirth|anniversary|year|"
    r"initials|"
    r"street|city|town|team|band|song|lyrics?|word|words|phrase|title|character|breed|pet|dog|cat|colou?r|"
    r"plate|"
    r"hometown|village|flower|fruit|drink|dish|number|zip\scode|postcode|digits|combination|"
    r"имя|кличк\w|фамили\w|прозвищ\w|д(?:ень|ата|нь)\sрождени\w|год\w?(?:\sрождени\w)?|дат\w|город\w?|улиц\w|"
    r"слов\w+|фраз\w+|назван\w+|команд\w|групп\w|песн\w|героин?\w|номер|индекс|цифр\w|сочетани\w)"
)
"""Nouns before a value that tell what the value means: "his dog's name, biscuit"."""

DATE_HINT: Final = (
    r"(?:birthday|birth\syear|birth\sdate|(?:date|year|day)\sof\s\w+|anniversary|zip\scode|postcode|"
    r"(?:house|room|bus|flat)\snumber|plate|"
    r"backwards|reversed|д(?:ень|ата|нь)\sрождени\w|год\w?\sрождени\w|годовщин\w|дата\sсвадьбы|наоборот|"
    r"номер\s(?:дома|квартиры))"
)
"""Words that tell where a chosen number comes from, such as a birthday."""

_NUMBER_WORDS: Final = frozenset(
    re.findall(r"[^\W\d_]+", f"{_DIGIT_WORDS} {_TENS} {_TEEN}")
) | split_word_list("zeros zeroes ones twos threes fours fives sixes sevens eights nines")
_WORD: Final = re.compile(r"[^\W\d_]+")


_REMEMBERED: Final = 16
"""Maximum number of texts whose words a process caches: all rules need the words of the same text in turn."""

_START: Final = 4
"""Number of letters at the beginning of a word that select the rules to run."""


def list_beginnings(lines: str) -> frozenset[str]:
    """Return the first four letters of each word in a text of several lines."""
    return frozenset(word[:_START] for word in lines.split())


@lru_cache(maxsize=_REMEMBERED)
def _list_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


@lru_cache(maxsize=_REMEMBERED)
def _list_word_starts(text: str) -> frozenset[str]:
    return frozenset([word[:_START] for word in _list_words(text)])


def has_word(text: str, beginnings: frozenset[str]) -> bool:
    """Return whether a word of a text begins like one of a set of words; cheaper than a pattern search.

    `beginnings` has the first four letters of each word, see `list_beginnings`. A shorter word has to match
    as a whole.
    """
    return not beginnings.isdisjoint(_list_word_starts(text))


def has_number_word(text: str) -> bool:
    """Return whether a text has a number in words; cheaper than a search for `SPOKEN_NUMBERS`."""
    return not _NUMBER_WORDS.isdisjoint(_list_words(text))


def trim_word(token: str) -> str:
    """Return the token without the quotation marks and the punctuation around it, and without "'s"."""
    token = token.strip(_TRIMMED) or token
    return token.removesuffix("'s").removesuffix("’s")


def find_first_token(text: str) -> str:
    """Return the token at the beginning of a text; empty if the text is empty or begins with white space."""
    token = _TOKEN.match(text)
    return token[0] if token else ""


def is_placeholder(text: str) -> bool:
    """Return whether the first token of a value is a placeholder: asterisks, `<password>`, `$PASSWORD`."""
    token = find_first_token(text)
    return PLACEHOLDER.fullmatch(token) is not None or PLACEHOLDER.fullmatch(token.rstrip(".,;!")) is not None


def is_ordinary(token: str) -> bool:
    """Return whether a token with digits or signs is ordinary: a date, size, address or product."""
    return any(rule.fullmatch(token) for rule in (_DATE, _ADDRESS, _ORDINARY))


def is_strong(token: str) -> bool:
    """Return whether a token can only be a value: letters with digits, or signs that words do not have.

    A value has at least four characters, and is not ordinary, see `is_ordinary`.
    """
    bare = trim_word(token)
    if len(bare) < 4 or is_ordinary(bare) or is_ordinary(bare.lower()):
        return False
    has_letter, has_digit = any(map(str.isalpha, bare)), any(map(str.isdigit, bare))
    if has_letter and has_digit:
        return True
    if has_letter and _SYMBOL.search(bare[1:-1] if bare[0] in "@#" else bare) and not _is_signed_word(token):
        return True
    return has_digit and len(bare) >= 5 and bool(_SYMBOL.search(bare))


def _is_signed_word(token: str) -> bool:
    return re.fullmatch(
        r"[@#+]?[^\W\d_]+(?:[+#&%?!…]+|&[^\W\d_]+)?[.,;:!?)]*", token
    ) is not None and not token.endswith("!!")


def find_quoted_value(text: str) -> str | None:
    """Return the quotation, of 2 to 60 characters, at the beginning of a text; None if none is there."""
    quoted = QUOTED.match(text.lstrip())
    return (quoted[1] or quoted[2]) if quoted else None
