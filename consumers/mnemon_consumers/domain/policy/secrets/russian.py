"""Russian descriptions of a credential, distinguished from values by morphology."""

import re
from functools import lru_cache
from typing import Any, Final

from mnemon_consumers.domain.policy.secrets.values import SERVICES
from mnemon_consumers.domain.policy.wording import split_word_list
from mnemon_consumers.domain.russian_dictionary import load_analyzer

_SUBJECTS: Final = split_word_list(
    """секрет тайна проблема загадка слабость защита основа формальность кошмар мелочь ерунда глупость
    мука беда вопрос тема ответственность безопасность необходимость требование правило политика
    менеджер ключ ключница головоломка набор комбинация сочетание фраза строка имя фамилия кличка
    дата день год номер слово название отпечаток биометрия вещь штука часть способ средство мера
    стандарт пустяк беспорядок зло неправда минимум максимум тайной секретом раз вариант бред случай
    уровень тип вид"""
)
_DESCRIBING: Final = frozenset(("VERB", "INFN", "ADJS", "PRTS", "PRTF", "GRND", "ADVB", "COMP", "PRED"))
_ADJECTIVE_ENDING: Final = re.compile(r"(?:[ыио]й|[ая]я|[оеыи]е)$")
_VERB_ENDING: Final = re.compile(r"(?:л|ла|ло|ли|ть|лся|лась|лось|лись|ться|тся)$")
"""Endings by which a word that is in no dictionary counts as a verb or a participle."""
_NOW: Final = frozenset(
    (
        "теперь",
        "сейчас",
        "пока",
        "всё",
        "все",
        "ещё",
        "еще",
        "всегда",
        "там",
        "тут",
        "такой",
        "следующий",
        "просто",
    )
)
_CONJUNCTIONS: Final = split_word_list("""как что будто словно где куда зачем почему либо ли чем""")
_PREPOSITIONS: Final = split_word_list(
    """от для к ко на из с со в во у под за по при о об через без до между над про"""
)
_CLAUSE_END: Final = re.compile(
    r"[,;:](?=\s|$)|[.!?…]+(?=\s|$)|\s[—–-]\s|\s\(|\s(?:и|а|но|или|потому|чтобы|если|когда|"
    r"который|которую|хотя|же|везде|после|перед|вместо|"
    r"от|для|на|из|у|в|во|к|с|со|по)\s"
)
_OPENED: Final = re.compile(
    r"(?:вай-?фа|нетфликс|стим|айклауд|гугл|ютуб|телеграм|телег|инст|фейсбук|вк|ватсап|вотсап|"
    r"дискорд|зум|скайп|роутер|ноут|"
    r"комп|аккаунт|акк|юзер|админ|рут|впн|гитхаб|озон|яндекс|сбер|тинькофф|госуслуг|"
    r"мессенджер|сайт|блог|сервер|хостинг|"
    r"айфон|айпад|макбук|макбук|виндовс|гейм|эпл|майл|джимейл|спотифа|дропбокс|ноушн|слак|ключниц)\w{0,6}"
)
"""Beginnings of names for things that a password opens; few dictionaries have them."""

_WORD: Final = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


def is_plain_value(text: str, *, follows_colon: bool = False) -> bool:
    """Return whether a text begins with words that can be a password, not with a description of one.

    For example, "солнышко" (sunshine) can be a password; "имя собаки" (the dog's name) describes one. After
    a colon, more phrases count, such as "красный дракон" (red dragon).
    """
    words = _WORD.findall(_CLAUSE_END.split(f"{text.strip()} ", maxsplit=1)[0])
    while words and words[0].lower() in _NOW:
        words = words[1:]
    if not words or len(words) > 24 or len(words[0]) < 3:
        return False
    if words[0].lower() in _PREPOSITIONS or words[0].lower() in _SUBJECTS | {"не", "ни", "нет", "это"}:
        return False
    if words[0].isascii():
        return words[0].lower() not in SERVICES
    if follows_colon:
        known = [word for word in words[:2] if load_analyzer().word_is_known(word.lower())]
        return not any(_is_describing(word) for word in known) and not _is_pronoun(words[0])
    if any(_is_describing(word) or _is_adjective(word) or _is_pronoun(word) for word in words):
        return False
    if len(words) == 1:
        return _is_nominative(words[0])
    # "имя собаки", "день рождения": a noun with its genitive describes; "кит лампа снег" is a value.
    return _is_nominative(words[0]) and all(_is_nominative(word) for word in words[1:])


def is_bare_value(gap_and_value: str) -> bool:
    """Return whether the words after "пароль" (password) end in a value that no verb introduces.

    For example, "от вайфая ромашка" (of the Wi-Fi daisy) ends in the value "ромашка".

    Russian has no word for "is" in the present. A preposition puts the nouns after it in an oblique case, and
    a noun puts the next noun in the genitive; a nominative noun that is left at the end is the value.
    """
    clause = re.split(
        r"[,;!?](?=\s|$)|\.(?=\s|$)|\s[—–-]\s|\s(?:и|а|но|чтобы|если|когда|потому)\s",
        gap_and_value,
        maxsplit=1,
    )[0]
    words = _WORD.findall(clause)
    if not words or len(words) > 24 or any(_is_describing(word) for word in words if not word.isascii()):
        return False
    value: list[str] = []
    is_object = has_adjective = False
    for word in words:
        lower = word.lower()
        if lower in _CONJUNCTIONS:
            return False
        if lower in _PREPOSITIONS:
            is_object, value = True, []
        elif word.isascii():
            if is_object or lower in SERVICES or (word[0].isupper() and not value):
                is_object = False
                value = []
            else:
                value.append(word)
        elif is_object:
            # The object of a preposition; its adjectives come before it.
            is_object = _is_adjective(word) or "Apro" in _find_best_tag(word)
        elif lower in _SUBJECTS or _is_pronoun(word):
            return False
        elif _is_adjective(word) and not value and (not _is_unknown(word) or _ADJECTIVE_ENDING.search(lower)):
            # An adjective alone describes the password; with a noun it may be the password.
            has_adjective = True
        elif _OPENED.fullmatch(lower):
            value = []
        elif _is_unknown(word) or (_is_nominative(word) and not _is_genitive(word)):
            value.append(word)
        elif value:
            return False
    if has_adjective and len(value) != 1:
        return False
    return bool(value) and len(value[0]) >= 3


def is_row_of_nouns(text: str) -> bool:
    """Return whether a text is a row of Russian nouns or adjectives, such as a seed phrase."""
    words = text.strip(" .").split()
    return (
        bool(words)
        and all(not word.isascii() and _WORD.fullmatch(word) and not _is_describing(word) for word in words)
        and all(_is_nominative(word) or _is_adjective(word) for word in words)
    )


def is_value_like(word: str) -> bool:
    """Return whether a word can be the value of a credential, such as a password.

    Russian verbs, adjectives, adverbs, pronouns and prepositions cannot, except for the words of `_NOW`. A
    word of ASCII letters can.
    """
    return not (
        _is_describing(word) or _is_adjective(word) or _is_pronoun(word) or word.lower() in _PREPOSITIONS
    )


def _is_describing(word: str) -> bool:
    if word.isascii() or word.lower() in _NOW or _find_best_tag(word).POS not in _DESCRIBING:
        return False
    return load_analyzer().word_is_known(word.lower()) or _VERB_ENDING.search(word.lower()) is not None


def _is_adjective(word: str) -> bool:
    return not word.isascii() and (
        sum(score for tag, score in _list_tags(word.lower()) if tag.POS in ("ADJF", "PRTF")) > 0.4
    )


def _is_pronoun(word: str) -> bool:
    return not word.isascii() and (_find_best_tag(word).POS == "NPRO" or "Apro" in _find_best_tag(word))


def _is_nominative(word: str) -> bool:
    if word.isascii():
        return True
    tags = _list_tags(word.lower())
    return any(tag.POS == "NOUN" and tag.case in ("nomn", "accs") for tag, _ in tags) or tags[0][0].POS in (
        None,
        "NUMR",
        "INTJ",
    )


def _is_genitive(word: str) -> bool:
    """Return whether a noun is more likely in an oblique case than in the nominative, and so not a value."""
    tags = [(tag, score) for tag, score in _list_tags(word.lower()) if tag.POS == "NOUN"]
    oblique = sum(
        score for tag, score in tags if tag.case in ("gent", "datv", "ablt", "loct", "gen2", "loc2")
    )
    nominative = sum(score for tag, score in tags if tag.case in ("nomn", "accs") and tag.number == "sing")
    return oblique > nominative


def _is_unknown(word: str) -> bool:
    """Return whether a word is in lower case and in no dictionary: made up, or several words run together."""
    return word.islower() and not load_analyzer().word_is_known(word)


def _find_best_tag(word: str) -> Any:
    return _list_tags(word.lower())[0][0]


@lru_cache(maxsize=20_000)
def _list_tags(lower: str) -> tuple[tuple[Any, float], ...]:
    return tuple((parse.tag, parse.score) for parse in load_analyzer().parse(lower))
