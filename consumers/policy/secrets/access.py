"""Credentials told by an action: "logs in with hunter2", "the safe opens with 13-27-42"."""

import re
from typing import Final

from consumers.policy.secrets import english
from consumers.policy.secrets.values import (
    QUOTED,
    SERVICES,
    SPOKEN_NUMBERS,
    UNIT,
    first_token,
    has_number_word,
    is_placeholder,
    is_strong,
    trimmed,
)
from consumers.policy.wording import pattern, word_set

_SENTENCE_END: Final = re.compile(r"[.;!]\s+")
_EVIDENCE: Final = re.compile(r"\d|[\"«“„`'‘]|login", re.IGNORECASE)
"""Cheap check: a value that an action tells has a digit, stands in quotes, or is typed at a login."""

_ENTRY: Final = pattern(
    r"""\b(?:log(?:s|ged|ging)?[ -]?(?:in|on|into|onto)|sign(?:s|ed|ing)?[ -]?(?:in|on|into)|
    g[eo]t(?:s|ting)?\s(?:in|into|on|onto|past)(?!\s(?:argu|fight|troubl|touch|line|contact|debat|well|bed))|unlock\w*|log-?ins?|lock\sscreen|portal|mailbox|inbox|
    admin\spanel|wi-?fi|wlan|vpn|nas|router|hotspot|(?:join|connect)\w*\s(?:to\s)?[^.;!?]{0,24}(?:network|server)|shared\sdrive)\b|
    (?<!\w)(?:вход\w*|вош\w+|войти|заход\w*|заш[её]л|зашл\w+|зайти|логин\w*|авториз\w+|разблок\w+|
    подключ\w+|админк\w+|вай-?фа\w+|впн|почт(?:у|е|ой|ы)|учётк\w+|аккаунт\w*|личн\w+\sкабинет\w*|
    в\sполе\sпарол\w+)(?!\w)"""
)
_INTRODUCED: Final = pattern(
    r"""(?<!\w)(?:with|us(?:es?|ed|ing)|via|through|under|typ(?:es?|ed|ing)(?:\sin)?|enter(?:s|ed|ing)?|
    put(?:s|ting)?(?:\sin)?|inputs?|key(?:s|ed)?\sin|
    под|по|с|со|через|ввод\w+|вв[её]л\w*|ввести|набира\w+|набра\w+|пиш\w+|вбива\w+|вбил\w*|
    использу\w+|указыва\w+)\s
    (?:(?:(?:the|a|just|always|всегда|просто)\s)?(?:words?|phrase|слов\w+|фраз\w+)\s)?
    (?P<value>\S.{2,60})"""
)
_TECHNICAL: Final = pattern(
    r"""wpa\d?|802\.11\w*|\w*[25](?:[.,]4)?g(?:hz)?|\d+(?:mbit|mbps|gbit|gbps|мбит|мбит/с|мбс|ггц|ghz)\S*|
    (?:oauth|ed|rsa|yubikey|node|java|usb|fido|id|ie|tls|ntlm|ikev|ssh)-?\d\w*|u2f|l2tp\w*|
    (?:chrome|firefox|safari|edge|opera|macos|ios|okta|intel|amd|ryzen|huawei|samsung|xiaomi|redmi|nokia|
    thinkpad)\w*-?\d+\w*|(?-i:[A-ZА-Я]{1,2})-?\d{2,4}"""
)
_NAMED_THING: Final = pattern(
    r"\s*(?:button|option|link|feature|account|app|кнопк\w+|аккаунт\w*|приложени\w+)"
)
_TYPED: Final = pattern(
    r"""\b(?:enter|type|put)(?:s|ed|d)?\s(?P<value>(?-i:[a-z]{5,24}))\s(?:at|on|in|into)\s(?:the|his|her|a)\s
    (?:login|log-in|sign-in|lock|password)\s(?:screen|box|prompt|page|field|form)"""
)
_NOT_TYPED: Final = word_set(
    """credentials details username email login password passwords passcode digits letters number
    numbers characters nothing something address phone symbols initials"""
)
_NETWORK: Final = pattern(
    r"""(?<!\w)(?:вай-?фа\w+|wi-?fi|wlan|впн|vpn)(?![^\W_])(?P<gap>[^.;!?:—–\d]{0,30}?)\s?(?::|[—–]|\s-\s|\?)\s?
    (?:(?:it['’]s|это)\s)?(?P<value>\S+)"""
)
_NETWORK_NAME: Final = pattern(r"network|ssid|called|name|channel|standard|сет[ьи]|назва|зов[её]тся|канал")

_LOCK: Final = (
    r"(?:door|gate|garage|safe|vault|alarm|locker|padlock|lock|suitcase|keypad|lockbox|barrier|"
    r"intercom|unlock\s\w+|storage unit|сейф\w*|чемодан\w*|калитк\w+|ворот\w*|гараж\w*|зам(?:ок|к[аеуи]|ком)|"
    r"велозам\w+|шкафчик\w*|домофон\w*|двер\w+|сигнализаци\w+|шлагбаум\w*|подъезд\w*|разблок\w+|"
    r"графическ\w+\sключ\w*|ячейк\w+)"
)
_GROUPS: Final = pattern(
    rf"""(?<!\w){_LOCK}(?!\w)(?:[^.;!?\d]{{0,50}}?\s(?P<said>\S+)|:)?\s
    (?P<value>\d{{1,2}}(?P<by>[ -])\d{{1,2}}
    (?:(?P=by)\d{{1,2}}){{1,4}})(?![\w-]|[.,:/]\d|\s\d)"""
)
_DATE: Final = re.compile(r"(?:0[1-9]|[12]\d|3[01])-(?:0[1-9]|1[0-2])-\d\d")
_UNLOCKING: Final = word_set("with by using to через комбинацией по")
_LETTING_IN: Final = pattern(
    r"(?<!\S)(?P<value>\S{4,40})\s(?:gets|lets|got|let)\s(?:you|me|him|her|us|them|anyone)\s(?:in|into|on|onto|past)\b"
)
_TURNS: Final = pattern(
    r"""(?:combination|combo|safe|lock|vault|комбинаци|сейф|зам[ок]к)[^.;!?]{0,40}?\d{1,2}\s
    (?:left|right|влево|вправо)\W+(?:(?:then|and|потом|и|затем)\s)?\d{1,2}\s(?:left|right|влево|вправо)"""
)
_DIGITS: Final = (
    rf"(?P<value>[#*]?(?:\d{{4,8}}|\d(?:-\d){{2,7}}|\d{{2,3}}[кkКK]\d{{2,6}})[#*]?|{SPOKEN_NUMBERS})"
    r"(?!\w|[.,:/-]\d)"
)
_PRESSED: Final = pattern(
    rf"""\b(?:dial|enter|punch|type|press|key|tap)(?:s|es|ed|ing)?(?:\sin)?\s{_DIGITS}[^.;!?]{{0,20}}?
    \b(?:{_LOCK}|to\s(?:open|unlock|get\sin|enter|disarm))|
    \bby\s(?:dial|enter|punch|typ|press|key|tapp)ing(?:\sin)?\s""".replace("(?P<value>", "(?:")
    + _DIGITS.replace("(?P<value>", "(?:")
)
_ENTERED: Final = pattern(
    rf"""(?:\bg[eo]ts?\s(?:in|into|past)\b[^.;!?\d]{{0,40}}?\s(?:with|by|using)|
    (?<!\w){_LOCK}\b[^.;!?\d]{{0,30}}?\s(?:answers?\sto|takes|wants|accepts|is\sset\sto|number[^.;!?\d]{{0,20}}\sis|
    opens?\s(?:with|to|on)|unlocks\s(?:with|to|on))|
    (?<!\w)(?:попада\w+|заход\w+|откры\w+)[^.;!?\d]{{0,40}}?\s(?:по|комбинаци\w+)|
    \bunlock\w*[^.;!?\d]{{0,30}}?\s(?:with|using)|
    (?<!\w)(?:{_LOCK}|откры\w+|отпер\w+)(?!\w)[^.;!?\d]{{0,40}}?\s(?:ввод\w+|ввести|набира\w+|набрать|наж\w+)|
    (?<!\w)комбинаци\w+\s{_LOCK}|
    (?<!\w){_LOCK}\s?:)\s{_DIGITS}"""
)
_MONEY: Final = re.compile(
    r"\s?(?:[€$£₽%]|people|guests|keys|combos?|moves|hits|гост|человек|ключ)", re.IGNORECASE
)


def says_access(text: str) -> bool:
    """Whether a text tells a credential or a code by the action of using it."""
    if not _EVIDENCE.search(text) and not has_number_word(text):
        return False
    if _opens_by_code(text):
        return True
    return any(_gets_in(sentence) for sentence in _SENTENCE_END.split(text) if _ENTRY.search(sentence))


def _gets_in(sentence: str) -> bool:
    start = 0
    while (found := _INTRODUCED.search(sentence, start)) is not None:
        if _is_credential(found["value"]):
            return True
        start = found.start("value")
    if any(
        found["value"] not in _NOT_TYPED and not english.is_description(found["value"])
        for found in _TYPED.finditer(sentence)
    ):
        return True
    given = (*_NETWORK.finditer(sentence), *_LETTING_IN.finditer(sentence))
    return any(
        is_strong(found["value"])
        and not _TECHNICAL.fullmatch(trimmed(found["value"]))
        and not _NETWORK_NAME.search(found.groupdict().get("gap") or "")
        for found in given
    )


def _is_credential(value: str) -> bool:
    """Whether words begin with a token of letters and digits, or with a quotation that is no button."""
    if quoted := QUOTED.match(value):
        if re.fullmatch(r"[^\W\d_]+", said := quoted[1] or quoted[2]) and said[0].isupper():
            return False
        words = said.lower()
        is_thing = _NAMED_THING.match(value[quoted.end() :]) or is_placeholder(words)
        return not is_thing and words not in SERVICES and not words.startswith(("sign in", "log in", "войти"))
    token = first_token(value)
    if not is_strong(token) or _TECHNICAL.fullmatch(trimmed(token)) or is_placeholder(token):
        return False
    return not re.search(r"^\W*\d+-|^\d+[^\W\d_]{1,5}$", token) and not UNIT.match(value[len(token) :])


def _opens_by_code(text: str) -> bool:
    if _TURNS.search(text) or _PRESSED.search(text):
        return True
    for found in _GROUPS.finditer(text):
        is_date = _DATE.fullmatch(found["value"]) and (found["said"] or "").lower() not in _UNLOCKING
        if not is_date and not UNIT.match(text[found.end() :]):
            return True
    return any(
        not UNIT.match(text[found.end() :]) and not _MONEY.match(text[found.end() :])
        for found in _ENTERED.finditer(text)
    )
