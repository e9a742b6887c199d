"""Detection of passwords in sentences, in English and Russian."""

import re
from collections.abc import Iterator
from typing import Final

from mnemon_consumers.domain.policy.secrets import english, russian
from mnemon_consumers.domain.policy.secrets.kinds.logins import says_login
from mnemon_consumers.domain.policy.secrets.stated_values import (
    is_certain_value,
    is_named_value,
    is_used_value,
    is_value,
)
from mnemon_consumers.domain.policy.secrets.values import (
    HINT,
    SERVICES,
    UNIT,
    find_first_token,
    find_quoted_value,
    has_word,
    is_placeholder,
    is_strong,
    list_beginnings,
    trim_word,
)
from mnemon_consumers.domain.policy.wording import compile_pattern, split_word_list

_ENGLISH: Final = (
    r"(?:passwords?|passwd|passphrase|passcode|passwort|pwd|psw|pswd|pw|pass phrase|"
    r"code ?word|secret word|magic word|security answer|(?:security|secret) question answer|"
    r"secret answer|(?:wi-?fi|wlan|wpa2?|network|encryption|security|recovery) key|"
    r"answer to (?:\w+ ){1,3}(?:security|secret) question)"
)
_RUSSIAN: Final = (
    r"(?:(?:мастер-?)?парол(?:ь|я|ю|ем|и|е|ей|ями|ям)|пассворд|кодов(?:ое|ым) слово(?:м)?|"
    r"(?:парольн|кодов|секретн)(?:ая|ую|ой) фраз(?:а|у|ой)|секретн(?:ое|ым) слово(?:м)?|"
    r"ответ\w* на (?:секретный|контрольный) вопрос|ключ(?:ом)? (?:от )?(?:шифрования|вай-?фая|wi-?fi|сети))"
)
_NOUN: Final = re.compile(rf"(?<![^\W_])(?:(?P<en>{_ENGLISH})|(?P<ru>{_RUSSIAN}))(?![^\W_])", re.IGNORECASE)


_MENTIONED: Final = list_beginnings(
    """pass pwd psw pswd pw code codeword safeword secret magic security word words phrase key keys log
    logs login logged sign signs credentials creds account access admin curl
    пас пасс пароль мастерпароль кодовое секретное вопрос ключ слово логин учётка учетка доступ вход
    заход кабинет"""
)
"""Beginnings of words. The rules about passwords run only on a text that has one of them, or one of
`_WITHIN`."""

_WITHIN: Final = ("pass", "pwd", " -p", " --p")
"""Strings that name a password inside a word, as in "dbpassword=hunter2", or in an option."""

_COMPOUND: Final = compile_pattern(
    r"""[\s-]+(?:managers?|management|reset\w*|polic\w+|protect\w+|fields?|forms|screens|pages|hash\w*|
    generators?|vaults?|
    rotation|rules?|length|
    strength|expir\w+|requirements?|hygiene|recovery|hints?|reuse|fatigue|prompt|screen|page|form|box|
    file|safe|
    security|sharing|cracking|cracker|leaks?|breach\w*|change|changes|checker|complexity|attempts?|entry|
    dialog|
    less|free|authentication|auth|login|logins|app|apps|keeper|keepers|book|notebook|habits|storage|game|
    puzzle|
    swordfish-scene)\b(?!\s*(?:is|:)\s*\S*\d\S*[^\W\d])"""
)
"""Words that make "password" a part of another thing's name."""

_BEFORE_COMPOUND: Final = compile_pattern(
    r"(?:менеджер\w*|хранилищ\w*|генератор\w*|смен\w|сброс\w?|политик\w|длин\w)\s*$"
)
_GAP_WORD: Final = r"[^\s:=,;.!?—–()\"«“„→'’]+(?:[.'’][^\s:=,;.!?—–()\"«“„→'’]+)*"
_CONNECTOR: Final = re.compile(
    rf"(?P<gap>(?:\s*\([^)]{{0,40}}\))?(?:[ ,]+{_GAP_WORD}){{0,10}}?)"
    r"(?P<sign>\s*(?::=|=>|->|=|:|→)(?!//)\s*|\s+[—–-]\s+(?:это\s+|is\s+)?|\s*[—–]\s*|"
    r"\s*,?\s+(?:is|was|are|equals|будет|был|стал|звучит как|такой|следующий|это|"
    r"равен)(?=\W)\s*[:—–-]?\s*|['’]s\s+(?!\w+\s+\w+\s+(?:is|was)))"
    r"(?P<value>.*)",
    re.IGNORECASE,
)
_PREPOSITION: Final = compile_pattern(
    r"[ ,]*(?:\(|(?:for|to|of|on|at|in|from|into|behind|here|there|now|itself|alone|still|от|для|к|ко|на|"
    r"из|в|во|"
    r"у|с|со|по)\b|[^\W\d_]*[А-Яа-яЁё])"
)
_RELATIVE: Final = compile_pattern(r"[ ,]*(?:that|which|(?:he|she|i|we|they|[A-Z]\w+)\s+\w+(?:s|ed)?\b)")
_BLOCKING: Final = compile_pattern(
    r"""\b(?:must|should|has|have|had|contains?|needs?|requires?|policy|manager|length|until|every|after|
    before|
    expires?|expired|forgot\w*|changed|состоит|содержит|должен|должна|должны|меня\w+|забыл\w*|истека\w+|
    требу\w+|
    длин\w+|хран\w+|забыва\w+|потеря\w+|утек\w+|придумыва\w+)\b"""
)
_CHANGED_TO: Final = compile_pattern(
    r"""\b(?:chang|set|reset|updat|switch|mak)\w*\s+(?:[\w'’-]+\s+){0,4}?(?:passwords?|passcode|
    passphrase|pwd)
    (?P<gap>(?:\s+(?:for|of|on|at|from)(?:\s+[\w'’-]+){1,4}?)?)\s+(?:back\s+)?to\s+(?P<value>.*)"""
)
_CHANGED_TO_RUSSIAN: Final = compile_pattern(
    r"""(?:смен|измен|помен|постав|
    перестав)\w*\s+(?:[\w-]+\s+){0,4}?парол[ьяи](?P<gap>(?:\s+[\w-]+){0,5}?)\s+на\s+
    (?P<value>.*)"""
)
_USED_AS: Final = compile_pattern(
    r"""\b(?:us(?:es?|ing|ed)|typ(?:es?|ed)|enter(?:s|ed)?|picked|chose|ha(?:s|ve|d)|keeps?|kept|puts?|with|
    set|использу\w+|ввод\w+|
    вв[её]л\w*|выбрал\w*|
    постав\w+|взял\w*)\s+(?:слово\s+|the\s+word\s+)?(?P<value>\S.{2,60}?)\s+
    (?:as|for|как|в\s+качестве)\s+(?:[\w'’-]+\s+){0,4}?(?:passwords?|passcode|passphrase|pwd|
    парол[ьяе]\w*)(?![^\W_])(?!\s+(?:manager|менеджер))"""
)
_VALUE_IS: Final = compile_pattern(
    r"""(?P<value>\S+)\s+(?:(?:that|this|which)\s)?(?:is|was|(?:serves|doubles|works|acts)\sas|
    [—–-](?:\s+это)?|это)\s+(?P<owner>(?:(?:the|my|his|her|our|their|your|
    мой|его|е[её]|их|наш|
    твой|новый|старый|[\w-]+['’]s)\s+)?)(?:[\w-]+\s+){0,4}?
    (?:password|passcode|passphrase|пароль|кодовое слово)(?![^\W_])(?!\s+(?:manager|policy|менеджер|
    to success))"""
)
_ACCOUNT: Final = compile_pattern(
    r"(?:\b(?:login|log-?in|user ?name|user|account|credentials|creds|wi-?fi|network|ssid|"
    r"server|host)\b|(?<!\w)(?:логин|юзер|имя пользователя|уч[её]тк\w+)(?!\w))"
)
_USING: Final = compile_pattern(
    r"""\b(?:us(?:es?|ing|ed)|with|has|have|had|under|enter(?:s|ed)?|typ(?:es?|ed)|set|via|by|tr(?:ies|
    ied)|(?:gave|told|sent)\s(?:me|him|her|us|them))\s
    (?:(?:the|this|his|her|their|my|our|same|new|old)\s)*$"""
)
"""Words that introduce a password without "is": "uses the password hamster"."""

_ASKING: Final = compile_pattern(
    r"(?<![^\W_])(?:how|whether|if|why|when|where|как|ли|если|почему|зачем|где)\s+(?:[\w'’-]+\s+){0,2}$"
)
"""Words before "change the password to" in a question or a conditional clause."""

_SUPPOSING: Final = compile_pattern(r"(?<![^\W_])(?:whether|if|why|ли)\s+(?:[\w'’-]+\s+){0,2}$")
_LATER: Final = compile_pattern(
    r"(?:,|\bnow|\bit['’]s|\bit\sis|\bit\swas|теперь|сейчас)(?=\s+(?P<value>\S+))"
)
_STORED_AS: Final = compile_pattern(r"(?:\s[\w'’-]+){0,5}?\s(?:as|in the form)\s(?P<value>.*)")
_STORING: Final = compile_pattern(
    r"\b(?:stor|keep|kept|set|sav|record|remember|chose|chosen|has|have|had|not)\w*\b"
)
_LOSING: Final = compile_pattern(
    r"""\b(?:forg[eo]t\w*|lost|loses?|resets?|resetting|recover\w*|cannot|can['’]t|locked)\b|(?<!\w)(?:забы\w+|потер\w+|сброс\w+|восстан\w+|утек\w*|ут[её]к\w*)"""
)
_NAMING: Final = compile_pattern(
    r"""(?:\b(?:account|user|username|nick|nickname|login|of|for|on|at|in|from|by|with|via|version|model|
    phone|laptop|router|since|and|app)|
    (?<!\w)(?:аккаунт\w*|пользовател\w+|юзер\w*|ник\w*|логин\w*|от|для|в|во|из|с|у|по|и|верси\w+|модел\w+|
    телефон\w*|роутер\w*|ноутбук\w*))\s$"""
)
"""Words before a token with digits that make it the name of something other than the password."""

_TOKEN: Final = re.compile(r"\S+")
_HINTED: Final = compile_pattern(
    rf"""(?:\s(?:is|was)|\s?[—–=]|\s-|['’]s|\sэто)\s[^.;!?:,]{{0,50}}?(?<!\w){HINT}(?!\w)[^.;!?:,\d]{{0,30}}?
    (?:\s?[:,(—–]|\s-)\s*(?P<value>[^\s].*)"""
)
_ASIDE: Final = compile_pattern(r""",\s(?:it['’]s|it\sis)\s(?:just\s|still\s)?(?P<value>[^\W\d_]{4,})\W*$""")
"""A single word at the end of the sentence: "the password, it's teapot"."""

_BACKUP_KEY: Final = compile_pattern(
    r"""\b(?:key|ключ)\s(?:to|for|of|от|для|к)\s[^.;!?]{0,30}?(?:backups?|archives?|drive|disk|vault|files?|
    бэкап\w*|архив\w*|диск\w*)
    (?:\sis|\sэто|\s?[:=—–])\s(?P<value>["«“„`]?\S+)"""
)
_PARTS: Final = compile_pattern(
    r"(?:letters?|symbols?|digits?|numbers?|words?|characters?|capitals?|month|day|year|signs?|букв\w*|"
    r"цифр\w*|знак\w*|символ\w*|слов\w*)(?!\w)"
)
_ADDED: Final = compile_pattern(r"""\s*(?:,|\()\s*(?P<value>["«“„`][^"»”`]{3,60}["»”`])\W*$""")
"""A quotation after a comma or in brackets: "set a new password, «violet umbrella»"."""

_ENDING: Final = compile_pattern(
    r"""[^.;!?"«»“”„`]{0,80}?(?:[:=—–(,]|\s-)\s*["«“„`][^"»”`]{3,60}["»”`]\W*$"""
)
"""A quotation after a sign, such as a dash or a colon, at the end of the sentence: "the password that all
know, — «two cats»"."""

_BECAME: Final = compile_pattern(
    r"""[^.;!?:]{0,30}?\s(?:became|becomes|turned\sinto|(?:has|had)\s(?:always\s)?been|(?:is|was|got|gets|
    has\sbeen|been)\s(?:set|changed|
    reset|updated|switched)\sto|стал[оаи]?|поставлен\w*)\s
    (?P<value>[^\W\d_]\S+)(?=\s(?:after|before|on|in|since|for|last|yesterday|today|после|вчера|на|в|с)\b|
    \W*$)"""
)
_NAMED_WORD: Final = compile_pattern(
    r"""(?:\b(?:code\s?word|secret\sword|magic\sword|safe\s?word)|(?<!\w)(?:спрос|спраш|назв|назыв|назо|
    скаж|сказать|ждут|жд[её]т)\w*\s(?:кодовое\s|секретное\s)?слово)\s
    (?:[:—–-]\s)?(?P<value>(?-i:[A-ZА-ЯЁ])[^\W\d_]{2,})\W*$"""
)
_CHOSEN: Final = compile_pattern(
    r"""[^.;!?]{0,40}?\s(?:goes\swith|went\swith|(?:and|that|which)\s(?:says|reads)|sticks\s(?:with|to)|
    stuck\swith|settled\son|служит|
    является|выступает|стоит|выбрал\w*|
    остановил\w+\sна)\s(?:(?:just|always|просто|слово)\s)?(?P<value>\S+)(?=\s(?:for|on|everywhere|везде|для|
    на)\b|\W*$)"""
)
_LISTED: Final = compile_pattern(r"(?:^|[:;]\s?|,\s)(?P<service>[\w.-]+)\s$")
_BESIDE_LOGIN: Final = compile_pattern(
    r"\b(?:with|as|using|login|user|customer|account|under|member|id|под|с|логин\w*)\b[^.;!?]*\s(?:and|"
    r"и)\s(?:(?:the|his|her|a)\s)?$"
)
_NETWORK_KEY: Final = compile_pattern(
    r"""(?<!\w)(?:wi-?fi|router|modem|hotspot|network|wlan|вай-?фа\w+|роутер\w*|
    модем\w*)(?!\w)[^.;!?]{0,60}?[\s,](?:key|ключ)
    (?:\s?[:=—–-]|\s(?:is|это))?\s(?P<value>["«“„`]?\S+)"""
)
_SPOKEN_WORD: Final = compile_pattern(
    r"""(?<!\w)слово\s(?:для|от)\s[^.;!?:—–]{0,40}?(?:банк|колл-центр|охран|сигнализац|поддержк|
    вход)\w*[^.;!?:—–]{0,20}?\s?(?:[:—–]|\s-)\s
    (?P<value>.+)|
    \b(?:word|phrase)\s(?:for|with)\s[^.;!?:—–]{0,40}?(?:call\scent(?:er|re)|(?:alarm|security)\s(?:company|
    firm|desk|team)|hotline)\b[^.;!?:—–]{0,20}?
    (?:\sis|\s?[:—–])\s(?P<said>.+)"""
)
_PHRASE: Final = compile_pattern(r"(?:passphrase|pass\sphrase|(?:парольн|кодов|секретн)\w+\sфраз\w+)")
_SERVICE_PASS: Final = compile_pattern(
    r"""(?<!\w)(?:wi-?fi|netflix|spotify|gmail|facebook|instagram|icloud|steam|discord|amazon|dropbox|
    github|account|login|
    логин\w*|акк\w*|почт\w+|вай-?фа\w+|стим\w*|нетфликс\w*|инст\w*|роутер\w*)(?!\w)(?:[^.;!?]|\.(?=\w)){0,40}?
    (?:,\s(?:pass|пасс?)|\s(?:pass|пасс?)(?:\s?[:=—–-]|\s(?:is|это)))\s(?P<value>[^\W\d_]{5,}\S*)\W*$|
    (?<!\w)пасс\s(?:от|для|к)\s[\w-]+(?:\s?[:=—–-])?\s(?P<bare>[A-Za-z]\S{4,})\W*$"""
)
_CHANGED_BEFORE_RUSSIAN: Final = compile_pattern(
    r"""(?<!\w)парол[ьяи](?P<gap>(?:\s+[\w-]+){0,4}?)\s+(?:смен|измен|помен|
    постав)\w*\s+(?:[\w-]+\s+){0,2}?на\s+
    (?P<value>.*)"""
)


def says_password(text: str) -> bool:
    """Return whether a text gives a password, rather than only mentioning one."""
    if not has_word(text, _MENTIONED):
        lower = text.lower()
        if not any(within in lower for within in _WITHIN):
            return False
    return (
        any(_gives_value_after(text, noun) for noun in _NOUN.finditer(text))
        or any(is_named_value(found["value"]) for found in _find_changes(text))
        or any(is_used_value(found["value"]) for found in _USED_AS.finditer(text))
        or any(_is_value_before_noun(found) for found in _VALUE_IS.finditer(text))
        or any(_is_service_pass(found) for found in _SERVICE_PASS.finditer(text))
        or any(
            is_strong(found["value"]) or find_quoted_value(found["value"])
            for rule in (_NETWORK_KEY, _BACKUP_KEY)
            for found in rule.finditer(text)
        )
        or _NAMED_WORD.search(text) is not None
        or any(is_named_value(found["value"] or found["said"]) for found in _SPOKEN_WORD.finditer(text))
        or says_login(text)
    )


def _gives_value_after(text: str, noun: re.Match[str]) -> bool:
    """Return whether a text gives a password after a noun such as "password"."""
    rest = text[noun.end() : noun.end() + 200]
    if _COMPOUND.match(rest) or _BEFORE_COMPOUND.search(text[max(0, noun.start() - 24) : noun.start()]):
        return False
    is_russian = noun["ru"] is not None
    connected = None if _SUPPOSING.search(text[: noun.start()]) else _CONNECTOR.match(rest)
    if connected:
        gap, sign, value = connected["gap"], connected["sign"], connected["value"]
        if not _BLOCKING.search(gap) and not gap.rstrip().endswith(("?", "!")):
            is_close = not gap.strip() or _PREPOSITION.match(gap) is not None
            if is_close or _RELATIVE.match(gap):
                if is_value(value, is_russian=is_russian, follows_colon=any(mark in sign for mark in ":=→")):
                    return True
            elif is_certain_value(value):
                return True
    sentence = re.split(r"[.;!?]\s", rest, maxsplit=1)[0][:80]
    aside = _ASIDE.search(sentence)
    if aside and english.is_plain_value(aside["value"]) and not _LOSING.search(text):
        return True
    hinted = _HINTED.search(sentence)
    if hinted and _is_hinted(hinted["value"], is_russian=is_russian):
        return True
    if not _LOSING.search(text) and (_ADDED.match(rest) or _ENDING.match(rest)):
        return True
    became = _BECAME.match(sentence)
    if became and not became["value"].endswith("er") and _is_hinted(became["value"], is_russian=is_russian):
        return True
    chosen = _CHOSEN.match(sentence)
    if chosen and _is_hinted(chosen["value"], is_russian=is_russian):
        return True
    if any(
        is_strong(later["value"]) and not UNIT.match(sentence[later.end() :])
        for later in _LATER.finditer(sentence)
    ):
        return True
    stored = _STORED_AS.match(sentence)
    if (
        stored
        and _STORING.search(text[max(0, noun.start() - 60) : noun.start()])
        and is_named_value(stored["value"])
    ):
        return True
    if not _LOSING.search(text) and any(
        _is_certain_token(sentence, token) for token in _TOKEN.finditer(sentence)
    ):
        return True
    return _is_followed_by_value(text, noun, rest, is_russian=is_russian)


def _is_certain_token(sentence: str, token: re.Match[str]) -> bool:
    """Return whether a token that follows "password" in the same sentence can only be the password."""
    return (
        is_strong(token[0])
        and len(trim_word(token[0])) >= 6
        and not _NAMING.search(sentence[: token.start()])
        and not UNIT.match(sentence[token.end() :])
    )


def _is_followed_by_value(text: str, noun: re.Match[str], rest: str, *, is_russian: bool) -> bool:
    """Return whether a value follows "password" without a verb between them: "password qwerty123"."""
    if asked := re.match(r"\s*\?\s*(\S+?)[.!]?$", rest):
        return is_strong(asked[1]) or english.is_plain_value(asked[1])
    if re.match(r"\s*[.;!?,)]", rest):
        return False
    clause = re.split(r"[;!?](?=\s|$)|[.,](?=\s|$)|\s(?:and|but|because|и|а|но)\s", rest, maxsplit=1)[0]
    number = re.match(r"\s+(\d{4,12})(?![\w.:/-]*\d)", clause)
    if number and not UNIT.match(clause[number.end() :]):
        return True
    if find_quoted_value(clause) and not _BLOCKING.search(rest[:30]):
        return not is_placeholder(clause.strip())
    if not _BLOCKING.search(clause) and any(_check_strong_tokens(clause)):
        return True
    if is_russian:
        nominative = noun["ru"].lower() in (
            "пароль",
            "мастер-пароль",
            "мастерпароль",
            "кодовое слово",
            "секретное слово",
            "пассворд",
        ) or noun["ru"].lower().startswith(("ответ на", "ключ от "))
        if noun["ru"].lower() == "паролем":
            told = re.search(r"(?<!\w)(?:с|под)\s$", text[: noun.start()], re.IGNORECASE)
            nominative = told is not None and len(clause.split()) == 1
        return nominative and russian.is_bare_value(clause)
    if _USING.search(text[max(0, noun.start() - 40) : noun.start()]):
        return english.is_plain_value(clause) or (
            _PHRASE.fullmatch(noun[0]) is not None
            and len(clause.split()) >= 3
            and english.is_plain_value(clause, follows_colon=True)
        )
    if len(clause.split()) == 1 and (
        _BESIDE_LOGIN.search(text[: noun.start()]) or _ends_with_service(text[: noun.start()])
    ):
        return english.is_plain_value(clause)
    named_account = _ACCOUNT.search(text[: noun.start()])
    return bool(named_account) and len(clause.split()) == 1 and english.is_plain_value(clause)


def _check_strong_tokens(clause: str) -> Iterator[bool]:
    """Yield, for each strong token, whether it may be the password.

    A token may be the password if it is the first or one of the last three words, follows no preposition or
    article, and is not a quantity. Only the first eight words of the clause are considered.
    """
    tokens = clause.split()[:8]
    for place, token in enumerate(tokens):
        if is_strong(token):
            before = tokens[place - 1].lower() if place else ""
            rest = " ".join(tokens[place + 1 :])
            is_governed = before in _GOVERNING
            is_near = place == 0 or place + 3 >= len(tokens)
            yield is_near and not is_governed and not UNIT.match(f" {rest}")


_GOVERNING: Final = split_word_list(
    """for to on at in from into of with by than since until till after before every within over under
    the a an от для к на из в во у с со по до после через за"""
)


def _find_changes(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches, at most one of each rule, that say that a password was changed to a value."""
    for rule in (_CHANGED_TO, _CHANGED_TO_RUSSIAN, _CHANGED_BEFORE_RUSSIAN):
        found = rule.search(text)
        if found and not _ASKING.search(text[: found.start()]):
            yield found


def _is_hinted(value: str, *, is_russian: bool) -> bool:
    """Return whether words after a hint ("his dog's name,") or a verb such as "became" are the password."""
    if _PARTS.match(value):
        return False
    bare = trim_word(find_first_token(value))
    if is_strong(bare):
        return True
    if bare.isdigit():
        return len(bare) >= 4 and not UNIT.match(value[len(bare) :])
    if len(value.split()) > 4:
        return False
    if bare.isascii():
        return english.is_plain_value(value)
    return is_russian and russian.is_plain_value(value)


def _ends_with_service(before: str) -> bool:
    """Return whether the name of a service is right before "password": "eBay password teapot"."""
    named = _LISTED.search(before)
    return named is not None and named["service"].lower() in SERVICES


def _is_service_pass(match: re.Match[str]) -> bool:
    value = match["value"] or match["bare"]
    return trim_word(value).lower() not in SERVICES and english.is_plain_value(value)


def _is_value_before_noun(match: re.Match[str]) -> bool:
    """Return whether the words before a noun such as "password" are its value: "qwerty12 is my password"."""
    value = match["value"]
    bare = trim_word(value)
    if find_quoted_value(value) or value[0] in '"«“' or value[-1] in '"»”':
        return True
    if not match["owner"].strip() and not is_strong(value):
        return False
    if is_strong(value):
        return not re.search(r"\ba(?:n)?\s", match[0][len(value) :])
    if bare.isdigit():
        return len(bare) >= 4
    if match["owner"].strip().lower() in ("the", "новый", "старый") or len(bare) < 4:
        return False
    if bare.isascii():
        is_first = match.start() == 0
        return is_first and english.is_plain_value(bare) and bare.lower() not in ("friend", "love")
    return match.start() == 0 and russian.is_value_like(bare)
