"""Detection of credentials given by an action: "logs in with hunter2", "the safe opens with 13-27-42"."""

import re
from typing import Final

from mnemon_consumers.domain.policy.secrets import english
from mnemon_consumers.domain.policy.secrets.values import (
    COUNTED,
    DATE_HINT,
    DIGIT,
    QUOTED,
    REPEATED_DIGITS,
    SERVICES,
    SPOKEN_NUMBERS,
    UNIT,
    find_first_token,
    has_number_word,
    has_word,
    is_placeholder,
    is_strong,
    list_beginnings,
    trim_word,
)
from mnemon_consumers.domain.policy.wording import compile_pattern, split_word_list

_SENTENCE_END: Final = re.compile(r"[.;!]\s+")
_EVIDENCE: Final = re.compile(
    r"\d|[\"«“„`'‘_&$@#*]|login|\b(?:types?|enters?|puts?)\s[a-z]+\s(?:when|to\s(?:get|log|unlock|open))",
    re.IGNORECASE,
)
"""Cheap check: a value that an action gives has a digit or a sign, is quoted, or is typed at a login."""

_SERVICE: Final = compile_pattern(
    r"""\b(?:accounts?|sites|websites|machines|devices|computers|netflix|spotify|gmail|facebook|instagram|
    icloud|steam|discord|amazon|
    dropbox|github|gitlab|yahoo|
    outlook|twitch|hulu|paypal|ebay|linkedin|reddit|tiktok|zoom|slack)\b|
    (?<!\w)(?:сайт(?:ов|ах)|сервис(?:ов|ах)|стим\w*|нетфликс\w*|госуслуг\w*|инстаграм\w*|дискорд\w*|озон\w*|
    яндекс\w*|сбер\w*|
    ютуб\w*|фейсбук\w*)(?!\w)"""
)
"""Things that passwords open. In a sentence with one of them and nothing about a login, a credential (see
`_is_credential`) counts after "uses" or "protected by"."""

_SIGN_IN: Final = compile_pattern(
    r"""\b(?:log(?:s|ged|ging)?[ -]?(?:in|on|into|onto)|sign(?:s|ed|ing)?[ -]?(?:in|on|into)|
    g[eo]t(?:s|ting)?\s(?:in|into|on|onto|past)(?!\s(?:argu|fight|troubl|touch|line|contact|debat|well|
    bed))|unlock\w*|log-?ins?|lock\sscreen|portal|mailbox|inbox|
    admin\spanel|wi-?fi|wlan|vpn|nas|router|hotspot|network|
    (?:let|lets|letting)\s(?:you|me|him|her|us|them|anyone|people|guests)\sin(?:to)?|
    (?:join|connect)\w*\s(?:to\s)?[^.;!?]{0,24}(?:network|server)|shared\sdrive)\b|
    (?<!\w)(?:вход\w*|вош\w+|войти|заход\w*|заш[её]л|зашл\w+|зайти|логин\w*|авториз\w+|разблок\w+|
    подключ\w+|админк\w+|вай-?фа\w+|впн|почт(?:у|е|ой|ы)|учётк\w+|аккаунт\w*|личн\w+\sкабинет\w*|
    в\sполе\sпарол\w+|роутер\w*)(?!\w)"""
)
_INTRODUCED: Final = compile_pattern(
    r"""(?<!\w)(?:with|us(?:es?|ed|ing)|via|through|under|typ(?:es?|ed|ing)(?:\sin)?|enter(?:s|ed|ing)?|
    put(?:s|ting)?(?:\sin)?|inputs?|key(?:s|ed)?\sin|wants|takes|accepts|expects|reuses?|recycles?|
    (?:protected|secured|guarded|unlocked|opened)\sby|goes\swith|
    под|по|с|со|через|ввод\w+|вв[её]л\w*|ввести|набира\w+|набра\w+|пиш\w+|вбива\w+|вбил\w*|
    использу\w+|указыва\w+)\s
    (?:(?:(?:the|a|just|always|всегда|просто)\s)?(?:words?|phrase|слов\w+|фраз\w+)\s)?
    (?P<value>\S.{2,60})"""
)
_USED: Final = compile_pattern(
    r"""(?<!\w)(?:us(?:es?|ed|ing)|reuses?|recycles?|(?:protected|secured|guarded)\s(?:by|with)|goes\swith|
    использу\w+|(?:под|с)\sпаролем|защищ[её]н\w*)\s
    (?P<value>\S.{2,60})"""
)
_TECHNICAL: Final = compile_pattern(
    r"""wpa\d?|802\.11\w*|\w*[25](?:[.,]4)?g(?:hz)?|\d+(?:mbit|mbps|gbit|gbps|мбит|мбит/с|мбс|ггц|ghz)\S*|
    (?:oauth|ed|rsa|yubikey|node|java|usb|fido|id|ie|tls|ntlm|ikev|ssh)-?\d\w*|u2f|l2tp\w*|
    (?:wireguard|openvpn|windows|office|linux|ubuntu|debian|chrome|firefox|safari|edge|opera|macos|ios|okta|
    intel|amd|ryzen|huawei|samsung|
    xiaomi|redmi|nokia|
    thinkpad)\w*-?\d+\w*|(?-i:[A-ZА-Я]{1,3})-?\d{2,4}(?-i:[A-Z]?)"""
)
_NAMED_THING: Final = compile_pattern(
    r"\s*(?:button|option|link|feature|account|app|кнопк\w+|аккаунт\w*|приложени\w+)"
)
_TYPED: Final = compile_pattern(
    r"""\b(?:enter|type|put)(?:s|ed|d)?\s(?P<value>(?-i:[a-z]{5,24}))\s(?:at|on|in|into)\s(?:the|his|her|a)\s
    (?:login|log-in|sign-in|lock|password)\s(?:screen|box|prompt|page|field|form)|
    \b(?:enter|type|put)(?:s|ed|d)?\s(?P<when>(?-i:[a-z]{5,24}))\s(?:when(?:ever)?|if|as\ssoon\sas|(?:each|
    every)\stime|to\s(?:get|log|unlock|open))\s
    [^.;!?]{0,40}?\b(?:vpn|wi-?fi|login|laptop|computer|router|portal|screen|server|asks|prompts|prompted|
    asked)\b"""
)
_NOT_TYPED: Final = split_word_list(
    """credentials details username email login password passwords passcode digits letters number
    numbers characters commands words fast slowly quickly loudly
    nothing something address phone symbols initials"""
)
_NETWORK: Final = compile_pattern(
    r"""(?<!\w)(?:вай-?фа\w+|wi-?fi|wlan|впн|vpn)(?![^\W_])(?P<gap>[^.;!?:—–\d]{0,30}?)\s?(?::|[—–]|\s-\s|
    \?)\s?
    (?:(?:it['’]s|это)\s)?(?P<value>\S+)"""
)
_NETWORK_NAME: Final = compile_pattern(
    r"network|ssid|called|name|channel|standard|сет[ьи]|назва|зов[её]тся|канал"
)

_LOCK: Final = (
    r"(?:door|gate|garage|safe|vault|alarm|locker|padlock|lock|suitcase|keypad|lockbox|barrier|"
    r"intercom|unlock\s\w+|storage unit|сейф\w*|чемодан\w*|калитк\w+|ворот\w*|гараж\w*|зам(?:ок|к[аеуи]|ком)|"
    r"велозам\w+|шкафчик\w*|домофон\w*|двер\w+|сигнализаци\w+|шлагбаум\w*|подъезд\w*|разблок\w+|"
    r"графическ\w+\sключ\w*|ячейк\w+)"
)
_GROUPS: Final = compile_pattern(
    rf"""(?<!\w){_LOCK}(?!\w)(?:[^.;!?\d]{{0,50}}?\s(?P<said>\S+)|:)?\s
    (?P<value>\d{{1,2}}(?P<by>[ -])\d{{1,2}}
    (?:(?P=by)\d{{1,2}}){{1,4}})(?![\w-]|[.,:/]\d|\s\d)"""
)
_THING: Final = (
    r"(?:doors?|gates?|garage|safe|vault|alarm|lockers?|padlock|lock|suitcase|keypad|lockbox|key\s?box|"
    r"barrier|intercom|"
    r"shed|cellar|bike|gym|studio|office|building|lobby|laptop|computer|pc|mac|macbook|i?phone|tablet|"
    r"ipad|kindle|console|tv|"
    r"printer|copier|terminal|till|car|scooter|drawer|cabinet|mailbox|elevator|lift|parking|car\spark|"
    r"storage|cash\sbox|"
    r"сейф\w*|чемодан\w*|калитк\w+|ворот\w*|гараж\w*|зам(?:ок|к[аеуи]|ком)|велозам\w+|шкаф\w*|домофон\w*|"
    r"двер\w+|"
    r"сигнализаци\w+|шлагбаум\w*|подъезд\w*|ячейк\w+|телефон\w*|ноут\w*|компьютер\w*|комп\w{0,2}|"
    r"планшет\w*|айфон\w*|"
    r"айпад\w*|принтер\w*|телевизор\w*|кладов\w+|лифт\w*|паркинг\w*|подвал\w*|офис\w*)"
)
"""Things that a numeric code opens."""

_CODE: Final = (
    rf"(?:[#*]?(?:\d{{4,8}}|\d(?:-\d){{2,7}}|\d{{2,3}}[кkКK]\d{{2,6}})[#*]?|{SPOKEN_NUMBERS}|"
    rf"{REPEATED_DIGITS})"
    r"(?!\w|[.,:/-]\d)"
)
_OPENED: Final = compile_pattern(
    rf"""(?<!\w){_THING}(?!\w)[^.;!?\d]{{0,40}}?\s(?:opens?\s(?:with|to|on|by|using)|opened\s(?:with|by|
    using)|
    unlocks\s(?:with|to|on|by|using)|unlocked\s(?:with|by|using)|wants|needs|takes|requires|asks\sfor|
    expects|accepts|
    answers\sto|responds\sto|listens\sto|
    lets?\s\w+\sin\s(?:with|on|for|after)|works\s(?:with|on|after|by)|is\s(?:opened|unlocked|disarmed|
    released|set)\s(?:with|by|to|using)|
    goes\s(?:quiet|silent|dead|off)\s(?:after|on|with|by))
    \s(?:(?:typing|entering|pressing|dialling|dialing|punching|keying)\s(?:in\s)?)?(?:the\s)?(?:(?:digits|
    number|numbers|pattern|word)\s)?(?P<digits>{_CODE})|
    \b(?:open|unlock|disarm|arm|lock|secure|close|start|get\sinto|got\sinto)(?:s|ed|ing|
    d)?\s[^.;!?\d]{{0,40}}?{_THING}\b[^.;!?\d]{{0,30}}?
    \s(?:with|by|using|on|via)\s(?:(?:typing|entering|pressing|dialling|dialing|punching|keying)\s(?:in\s)?)?
    (?:the\s)?(?:(?:digits|number|numbers|pattern)\s)?(?P<by>{_CODE})|
    \b(?:key|punch|typ|dial|tapp|enter|press|put)(?:e?s|ed|ing)?\s(?:in\s)?(?:the\s)?(?:(?:digits|number|
    numbers|pattern)\s)?
    (?P<typed>{_CODE}|\d{{1,4}}(?:,?\s(?:then|and)\s[#*]?\d{{1,8}})+)[^.;!?\d]{{0,30}}?\b{_THING}(?!\w)|
    (?<!\w){_THING}(?!\w)[^.;!?\d]{{0,40}}?\s(?:key|punch|typ|dial|tapp|enter|press|put)(?:s|ed|
    ing)?\s(?:in\s)?(?:the\s)?
    (?:(?:digits|number|numbers|pattern)\s)?(?P<after>{_CODE})|
    (?<!\w){_THING}(?!\w)[^.;!?\d]{{0,40}}?\s(?:is|was|are|—|–|это)\s(?![^.;!?:,]{{0,30}}?\b(?:in|on|at|
    from|since|before|after|for|в|на|с|к|от|до)\s)
    [^.;!?:,\d]{{0,30}}?(?<!\w){DATE_HINT}(?!\w)[^.;!?:,\d]{{0,30}}?
    \s?(?:[:,(—–]|\s-)\s*(?P<hinted>{_CODE})|
    (?:^|[.;!?,]\s)(?:the\sdigits\s|цифры\s|комбинация\s)?(?P<first>{_CODE})\s(?:still\s|also\s|
    всё\sещё\s)?(?:opens|unlocks|disarms|releases|gets\s\w+\s(?:into|past|through)|
    lets\s\w+\s(?:into|past|through)|works\s(?:for|on|at)|is\swhat|is\sfor|открывает|отпирает|снимает|
    отключает|подходит\sк|—\sэто)
    \s[^.;!?\d]{{0,30}}?(?<!\w){_THING}(?!\w)"""
)
_LISTED: Final = (
    r"\d{1,2}(?:,?\s(?:(?:and\s)?then|and|потом|затем|и)\s(?:to\s|на\s)?\d{1,2}|"
    r",\s\d{1,2}){2,6}(?![\w.:/-]|,?\s\d)"
)
_TURNED: Final = compile_pattern(
    rf"""\b(?:turn|dial|spin|rotat|set|enter|press|punch)\w*\s[^.;!?\d]{{0,30}}?{_LISTED}|
    (?<!\w)(?:крут\w+|повора\w+|повернуть|наб[оие]р\w*|наж\w+|комбинаци\w+)\s[^.;!?\d]{{0,20}}?{_LISTED}|
    (?<!\w){_THING}(?!\w)[^.;!?\d]{{0,40}}?\s(?:with|by|is|combo|combination|opens?\s\w+)\s{_LISTED}"""
)
_DIRECT: Final = compile_pattern(
    r"""(?<!\w)(?:(?:bike|door|gate|suitcase|smart|combination|garden|shed)\slock|padlock|lockbox|keypad|
    intercom|burglar\salarm|(?:домашн\w+\s)?сейф|
    домофон|калитка|велозамок|замок|сигнализация|шлагбаум)\s?[:—–-]?\s[#*]?\d{4,6}[#*]?\W*$"""
)
_A_THING: Final = compile_pattern(rf"(?<!\w){_THING}(?!\w)")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_SHAPE: Final = compile_pattern(
    r"""\b(?:unlock|lock|swipe|screen)\w*\s(?:\w+\s){0,3}?(?:pattern|gesture)\b[^.;!?]{0,30}?\s(?:letter|
    shaped?|like|looks)\b|
    \bunlock\w*\s[^.;!?]{0,40}?\sdrawing\s|
    (?<!\w)графическ\w+\sключ\w*[^.;!?]{0,30}?\s(?:букв\w+|в\sвиде|в\sформе|зигзаг\w*|квадрат\w*|спирал\w+)"""
)
_FIRST: Final = compile_pattern(
    r"""(?:^|[.;!?,]\s)(?:the\s(?:word|phrase)\s|слово\s)?(?P<value>\S{4,40})\s(?:(?:still|also|now|usually|
    всё\sещё|теперь)\s)?
    (?:is\s(?:what|how|all)|works\s(?:for|on|at|as)|opens|unlocks|logs|signs|gets|lets|goes\sinto|
    will\s(?:get|let|open|unlock)|
    подходит\sк|открывает|пускает|пустит|откроет|от)\s"""
)
_BY_WORD: Final = compile_pattern(
    r"""(?:\b(?:unlock\w*|decrypt\w*|disarm\w*|log\w*\sin|sign\w*\sin(?:to)?|protected|secured|locked|
    (?:archive|zip|files?|folder|door|gate|safe|laptop|phone|drive|vault|
    wallet)\s(?:[^.;!?]{0,20}?\s)?opens?)\s(?:[^.;!?]{0,40}?\s)?
    (?:with|by|to|using)\sthe\s(?:words?|phrase)|
    (?<!\w)(?:(?:архив|файл|папк|двер|калитк|сейф|телефон|ноут|диск|флешк|кошел|
    чат)\w*\s(?:[^.;!?]{0,20}?\s)?(?:открыва|закрыт|защищ)\w*|
    (?:разблок|расшифров|запаролен|вход|заход|логин|отпира)\w*)\s(?:[^.;!?]{0,30}?\s)?(?:по\s)?(?:слов(?:ом|
    у|ами|ам)|фраз(?:ой|е)))\s(?:[:—–-]\s)?(?P<value>\S+)(?:\s(?!and|or|и)\S+){0,5}?
    (?=\s(?:for|на|от|для|в|и|and|when|every)\s|\W*$)"""
)
_STANDING: Final = re.compile(
    r"(?<!\S)(?=\S*[^\W\d_]{4})(?=\S*\d)[\"'«“]?[^\W\d_][^\s/@:.]{6,40}(?=[.,;!?]?(?:\s|$))"
)
_NAMED_IN_SENTENCE: Final = compile_pattern(
    r"""(?<!\w)(?:user\s?names?|nick\w*|handle|gamer\s?tag|alias|called|named|followers?|profile|model|
    version|channel|
    hashtag|address|ssid|repo\w*|branch|file|ник\w*|юзернейм\w*|зовут|назыв\w+|модел\w+|верси\w+|канал\w*|
    профил\w+|
    подписчик\w*|адрес\w*|ветк\w+|файл\w*|репозитори\w+)(?!\w)"""
)
_GOVERNING: Final = split_word_list(
    """the a an his her their its my our your this that in on at of for from by to into as and or user account
    login than about like via network id email в во на из от для у о к с со по и или как под через
    пользователь пользователя аккаунт аккаунта логин логином юзер сеть сети почта почту"""
)
_DATE: Final = re.compile(r"(?:0[1-9]|[12]\d|3[01])-(?:0[1-9]|1[0-2])-\d\d")
_UNLOCKING: Final = split_word_list("with by using to через комбинацией по")
_LETTING_IN: Final = compile_pattern(
    r"(?<!\S)(?P<value>\S{4,40})\s(?:gets|lets|got|let)\s(?:you|me|him|her|us|them|anyone)\s(?:in|into|on|"
    r"onto|past)\b"
)
_TURNS: Final = compile_pattern(
    r"""(?:combination|combo|safe|lock|vault|комбинаци|сейф|зам[ок]к)[^.;!?]{0,40}?\d{1,2}\s
    (?:left|right|влево|вправо)\W+(?:(?:then|and|потом|и|затем)\s)?\d{1,2}\s(?:left|right|влево|вправо)|
    (?:combination|combo|safe|lock|vault|комбинаци|сейф|зам[ок]к)[^.;!?]{0,40}?\s(?:left|right|влево|
    вправо)\s(?:to\s|на\s)?\d{1,2}\W+
    (?:(?:then|and|потом|и|затем)\s)?(?:left|right|влево|вправо)\s(?:to\s|на\s)?\d{1,2}"""
)
_DIGITS: Final = (
    rf"(?P<value>[#*]?(?:\d{{4,8}}|\d(?:-\d){{2,7}}|\d{{2,3}}[кkКK]\d{{2,6}})[#*]?|{SPOKEN_NUMBERS})"
    r"(?!\w|[.,:/-]\d)"
)
_PRESSED: Final = compile_pattern(
    rf"""\b(?:dial|enter|punch|type|press|key|tap)(?:s|es|ed|ing)?(?:\sin)?\s{_DIGITS}[^.;!?]{{0,20}}?
    \b(?:{_LOCK}|to\s(?:open|unlock|get\sin|enter|disarm))|
    \bby\s(?:dial|enter|punch|typ|press|key|tapp)ing(?:\sin)?\s""".replace("(?P<value>", "(?:")
    + _DIGITS.replace("(?P<value>", "(?:")
)
_ENTERED: Final = compile_pattern(
    rf"""(?:\b(?:g[eo]ts?|lets?\s\w+)\s(?:in|into|past)\b[^.;!?\d]{{0,40}}?\s(?:with|by|using)|
    (?<!\w){_LOCK}\b[^.;!?\d]{{0,30}}?\s(?:answers?\sto|takes|wants|accepts|is\sset\sto|
    number[^.;!?\d]{{0,20}}\sis|
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


_LOCKED: Final = list_beginnings(
    """door gate garage safe vault alarm lock padlock suitcase keypad key keybox barrier intercom shed
    cellar bike gym studio office building lobby laptop computer pc mac macbook phone iphone tablet
    ipad kindle console tv printer copier terminal till car cars scooter drawer cabinet mailbox
    elevator lift parking storage cash unlock combo combination dial enter punch type typing typ press
    tap taps tapp keys keying get gets got getting let lets letting number
    сейф чемодан калитка ворот гараж замок замк велозамок шкаф домофон дверь двери двер сигнализация
    шлагбаум подъезд ячейка телефон ноут компьютер комп планшет айфон айпад принтер телевизор кладов
    лифт паркинг подвал офис разблок графич комбинац попада заход откры отпер"""
)
"""Beginnings of words. The rules about numeric codes run only on a text that has one of them."""

_ENTERED_AT: Final = list_beginnings(
    """log logs login logged sign get gets got getting unlock lock portal mailbox inbox admin wifi wi
    wlan vpn nas router hotspot network let lets letting join connect shared account site websites
    machines devices computers netflix spotify gmail facebook instagram icloud steam discord amazon
    dropbox github gitlab yahoo outlook twitch hulu paypal ebay linkedin reddit tiktok zoom slack
    вход вош вошла вошёл вошел войти заход зашёл зашел зашла зайти логин авториз разблок подключ админ
    вай вайфай впн почт учётк учетк аккаунт личн поле роутер сайт сервис стим нетфликс госуслуг
    инстаграм дискорд озон яндекс сбер ютуб фейсбук"""
)
"""Beginnings of words. The rules about words and tokens as passwords run only on a text with one of them."""

_DRAWN: Final = list_beginnings("pattern gesture drawing word phrase графич слов фраз")
"""Beginnings of words. The rules about patterns and words that unlock a thing run only on a text with one of
them."""


def says_access(text: str) -> bool:
    """Return whether a text gives a credential or a code by the action that uses it."""
    if has_word(text, _DRAWN) and (
        _SHAPE.search(text) or any(_is_secret_word(found["value"]) for found in _BY_WORD.finditer(text))
    ):
        return True
    is_number = DIGIT.search(text) is not None or has_number_word(text)
    if is_number and has_word(text, _LOCKED) and _says_opening_code(text):
        return True
    if not has_word(text, _ENTERED_AT) or not (is_number or _EVIDENCE.search(text)):
        return False
    return any(_says_sign_in(sentence) for sentence in _SENTENCE_END.split(text))


def _is_secret_word(value: str) -> bool:
    """Return whether the word that unlocks a thing is a value, not a description of a credential."""
    bare = trim_word(value)
    return len(bare) >= 3 and not english.is_description(bare) and bare.lower() not in _NOT_TYPED


def _says_sign_in(sentence: str) -> bool:
    """Return whether a sentence gives a credential with which a person signs in or enters a network."""
    is_sign_in = _SIGN_IN.search(sentence) is not None
    if not is_sign_in and not _SERVICE.search(sentence):
        return False
    start = 0
    rule = _INTRODUCED if is_sign_in else _USED
    while (found := rule.search(sentence, start)) is not None:
        if _is_credential(found["value"]):
            return True
        start = found.start("value")
    if any(
        (typed := found["value"] or found["when"]) not in _NOT_TYPED and not english.is_description(typed)
        for found in _TYPED.finditer(sentence)
    ):
        return True
    given = (*_NETWORK.finditer(sentence), *_LETTING_IN.finditer(sentence), *_FIRST.finditer(sentence))
    return any(
        is_strong(found["value"])
        and not _TECHNICAL.fullmatch(trim_word(found["value"]))
        and not _NETWORK_NAME.search(found.groupdict().get("gap") or "")
        for found in given
    ) or (is_sign_in and any(_may_be_password(sentence, token) for token in _STANDING.finditer(sentence)))


def _may_be_password(sentence: str, token: re.Match[str]) -> bool:
    """Return whether a word with digits may be a password: nothing makes it a name or an amount."""
    if _NAMED_IN_SENTENCE.search(sentence) or not is_strong(token[0]):
        return False
    if _TECHNICAL.fullmatch(trim_word(token[0])) or UNIT.match(sentence[token.end() :]):
        return False
    before = sentence[: token.start()].split()
    if not before:
        return True
    return before[-1].lower() not in _GOVERNING and not (len(before) > 1 and before[-1][0].isupper())


def _is_credential(value: str) -> bool:
    """Return whether words begin with a token that can only be a credential, or with a quoted credential.

    Such a token mixes letters with digits or signs, or digits with signs. Names of technologies and devices
    ("wpa2"), placeholders, amounts with a unit, and the quoted name of a button, a service or a thing are no
    credentials.
    """
    if quoted := QUOTED.match(value):
        if re.fullmatch(r"[^\W\d_]+", said := quoted[1] or quoted[2]) and said[0].isupper():
            return False
        words = said.lower()
        is_thing = _NAMED_THING.match(value[quoted.end() :]) or is_placeholder(words)
        return not is_thing and words not in SERVICES and not words.startswith(("sign in", "log in", "войти"))
    token = find_first_token(value)
    if not is_strong(token) or _TECHNICAL.fullmatch(trim_word(token)) or is_placeholder(token):
        return False
    return not re.search(r"^\W*\d+-|^\d+[^\W\d_]{1,5}$", token) and not UNIT.match(value[len(token) :])


def _is_opening_number(match: re.Match[str]) -> bool:
    """Return whether a matched number may be a code that opens something, such as a door.

    Such a number is neither a quantity, nor a year after a word such as `by` or `for`.
    """
    place = next(name for name, value in match.groupdict().items() if value is not None)
    rest = match.string[match.end(place) :]
    if any(rule.match(rest) for rule in (UNIT, _MONEY, COUNTED)):
        return False
    before = match.string[: match.start(place)].split()[-1:]
    return not (
        _YEAR.fullmatch(match[place]) and before and before[0].lower() in ("by", "on", "after", "for")
    )


def _says_opening_code(text: str) -> bool:
    """Return whether a text gives a number that opens a thing, such as a door or a safe."""
    if any(rule.search(text) for rule in (_TURNS, _PRESSED, _DIRECT)):
        return True
    if (turned := _TURNED.search(text)) and _A_THING.search(text) and not UNIT.match(text[turned.end() :]):
        return True
    if any(_is_opening_number(found) for found in _OPENED.finditer(text)):
        return True
    for found in _GROUPS.finditer(text):
        is_date = _DATE.fullmatch(found["value"]) and (found["said"] or "").lower() not in _UNLOCKING
        if not is_date and not UNIT.match(text[found.end() :]):
            return True
    return any(_is_opening_number(found) for found in _ENTERED.finditer(text))
