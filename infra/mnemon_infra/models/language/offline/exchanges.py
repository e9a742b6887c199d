"""Sentences of messages or of earlier summaries, grouped by exchange."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from math import sqrt
from typing import Final, NamedTuple

from mnemon_infra.models.language.offline.changes import find_stems
from mnemon_infra.models.language.offline.dates import find_dates, write_dates
from mnemon_infra.models.language.offline.details import TokenizedSentence, find_names
from mnemon_infra.models.language.offline.rules import compile_forms
from mnemon_infra.models.language.offline.sentences import is_cyrillic, split_sentences
from mnemon_infra.models.language.offline.statements import find_statements
from mnemon_infra.models.language.port import PromptMessage

_USER: Final = 1.5
_STATEMENT: Final = 2.0
_DETAIL: Final = 1.2
_WISH: Final = 1.3
_OFFER: Final = 0.5
"""Factors of the weight of a sentence.

They are: `_USER` for each sentence of a user, `_STATEMENT` for a user's statement about themselves, `_WISH`
for a user's question, `_OFFER` for an assistant's question, and `_DETAIL` for each name or number, up to
`_MOST_WEIGHED_DETAILS`, and once for the first person.
"""

_NEW: Final = 0.5
"""Maximum share by which the weight of a sentence is raised: the newer the sentence, the larger its share."""

_ECHO: Final = 50
"""Number of preceding sentences with which an assistant's sentence is compared, to omit repetitions."""

_MOST_WEIGHED_DETAILS: Final = 4

_SPEAKERS: Final = {
    False: {"user": "User", "assistant": "Assistant"},
    True: {"user": "Пользователь", "assistant": "Ассистент"},
}
_ROLES: Final = {name: role for names in _SPEAKERS.values() for role, name in names.items()}
_MARK: Final = re.compile(
    r"(?:(?<=\s)|\A)(?:\[(?P<day>\d{4}-\d\d-\d\d)\] )?"
    rf"(?P<who>{'|'.join(_ROLES)})(?P<name> \([^)]{{1,100}}\))?: "
)
"""Beginning of a speaker's words in a summary of the offline model: perhaps a day in brackets, and a name."""

_NO_SPEECH: Final = re.compile(r"\((?:tools used|использованы): |\[\.\.\.\]$")
_OF_ONESELF: Final = re.compile(
    r"\b(?:I|my|me|we|our|я|мне|меня|мой|моя|мо[её]|мои|мы|у нас)\b", re.IGNORECASE
)
_SHORT_ANSWER: Final = 4
"""Maximum words of an answer that tells little without its question: "Lisbon.", "Two, I think"."""

_COURTESY: Final = compile_forms(
    r"""(?:(?:hi|hello|hey)(?: there| again| (?-i:[A-Z])\w+)?|good (?:morning|afternoon|evening|day|night)|
    (?:many )?thanks(?: again| so much| very much| a lot)?|thank you(?: so much| very much| again)?|thx|
    ok(?:ay)?|great|sure(?: thing)?|perfect|awesome|excellent|wonderful|cool|nice|got it|of course|
    no problem|you(?:'|’)?re (?:very |most )?welcome|welcome(?: back)?|my pleasure|certainly|absolutely|
    have a (?:good|nice|great|lovely|safe) (?:\w+ )?\w+|(?:good ?)?bye|see you(?: later| soon)?|good luck|
    that (?:sounds|is) (?:great|good|nice|wonderful)|sounds (?:great|good)|i see|wow|aw+|hm+|mhm|oh|ah|ha|yay|
    np|ty|tysm|gotcha|noted|alright|all right|
    (?:при+вет(?:ик|ствую)?|здравствуй(?:те)?)(?: (?-i:[А-ЯЁ])\w+)?|добр(?:ый|ое|ого) (?:день|утро|вечер|дня)|
    доброй ночи|доброго времени суток|спасибо(?: большое| огромное| тебе| вам)*|большое спасибо|
    благодарю(?: вас)?|пожалуйста|ок(?:ей)?|хорошо|отлично|супер|класс|здорово|понятно|ясно|пока|
    до (?:свидания|встречи|завтра)|не за что|конечно|рада? (?:был[аи]? )?помочь|рада? слышать|
    хорошего (?:дня|вечера)|удачи|ага|угу|ладно|прекрасно|замечательно|договорились|
    спс|пасиб(?:о|ки)?|спасибки|пжл?ст?|пожалста|окей|оки|пон|понял[аи]?|норм|ого|ух ты|хм+|мм+|ну|ха)
    (?=\s*(?:[,.!…:;)—–-]|\Z))[\s,.!…:;)—–-]*"""
)
_LAUGHS: Final = r"""
    a?(?:ha){2,10}h?|(?:he){2,10}|lo+l|lmf?ao+|rofl|xd|а?(?:ха){2,10}х?|ахах|(?:хе){2,10}|(?:хи){2,10}|л+о+л"""
_LAUGHTER: Final = compile_forms(rf"(?:{_LAUGHS})(?!\w)[\s,.!…:;)—–-]*")
_LAUGHTER_AT_END: Final = compile_forms(rf"(?:(?<=[\s,])(?:{_LAUGHS})(?:[\s,.!…)]+|\Z))+\Z")
_ASSENT: Final = compile_forms(
    r"""(?:ok(?:ay)?|alright|all right|sure(?: thing)?|of course|no problem|certainly|absolutely|perfect|
    sounds (?:great|good)|ок(?:ей)?|оки|хорошо|конечно|ага|угу|ладно|договорились|норм)(?!\w)[\s,.!…)]*"""
)
"""Courtesies that are answers to a question such as "Shall I book it?"."""

_OPEN_QUESTION: Final = compile_forms(
    r"""(?:(?:and|but|so|а|и|но|ну)[\s,]+)?
    (?:(?:in|at|on|for|to|from|with|about|в|во|на|с|со|о|об|от|до|для|за|по|к|у|из)\s+)?
    (?:how|what|when|where|who|whom|whose|why|which|
    как|каки\w+|како\w+|какую|какая|что|чего|чем|чему|когда|где|куда|откуда|кто|кого|кому|кем|почему|зачем|
    сколько|скольк\w+|чей|чья|чьё|чье|чьи)\b"""
)
"""Beginning of a question that "ok" does not answer."""

_OFFER_OF_HELP: Final = compile_forms(
    r"""(?:(?:how|what) (?:can|may|could) I (?:help|do|assist)|is there anything|anything else|let me know|
    feel free|(?:i(?:'|’)?m |always )?(?:happy|glad|here) to help|hope (?:this|that) helps|
    чем (?:я )?(?:могу|ещё могу|еще могу|вам|тебе)\b.*помо|обращайтесь|обращайся|дайте знать|дай знать|
    если (?:что|будут|возникнут|нужн)|могу (?:ли )?я (?:ещё |еще )?(?:чем|помочь)).*"""
)


class Utterance(NamedTuple):
    """A sentence of one speaker.

    Attributes:
        place: number that orders the utterances of all exchanges.
        day: day of the utterance; None if unknown.
        speaker: name of the speaker in a summary; None if unknown.
        is_answer: True if the assistant is the speaker.
        is_wish: True if the sentence is a question of a speaker other than the assistant.
        has_short_answer: True if the sentence is a question that a user answers in a few words.
        sentence: the sentence in tokens.
        stems: stems of the words of the sentence, without stop words.
        worth: weight of the sentence in the choice for a summary.
    """

    place: int
    day: date | None
    speaker: str | None
    is_answer: bool
    is_wish: bool
    has_short_answer: bool
    sentence: TokenizedSentence
    stems: frozenset[int]
    worth: float

    @property
    def is_idle(self) -> bool:
        """True if the utterance is a question of the assistant without a name, a number or a short answer."""
        is_question = self.is_answer and self.sentence.text.endswith("?")
        return is_question and not self.sentence.details and not self.has_short_answer


class Exchange(NamedTuple):
    """A user message with the answers to it, the answers before the first user message, or a summary."""

    utterances: Sequence[Utterance]

    @property
    def has_details(self) -> bool:
        return any(each.sentence.details for each in self.utterances)


class _Line(NamedTuple):
    """A sentence with day, speaker, weight, and the number of the exchange that it belongs to.

    `is_short_answer` is True for a user's sentence of a few words after a question of another speaker, and
    `has_short_answer` is True for that question.
    """

    exchange: int
    day: date | None
    speaker: str | None
    role: str
    text: str
    worth: float
    is_short_answer: bool = False
    has_short_answer: bool = False


def split_exchanges(messages: Sequence[PromptMessage]) -> list[Exchange]:
    """Split messages into exchanges, oldest first, without repetitions.

    Greetings, thanks, laughter and the assistant's offers of help are left out, unless the messages consist
    of nothing else. Words such as "sure" stay after a question.
    """
    of_messages = any(message.role in ("user", "assistant") for message in messages)
    found = _mark_answers(list(_split_messages(messages) if of_messages else _split_summaries(messages)))
    lines = [line for each in found if (line := _remove_courtesy(each))] or found
    names = find_names([line.text for line in lines])
    read = [(line, TokenizedSentence.from_text(line.text, names), find_stems(line.text)) for line in lines]
    common = Counter(stem for _, _, of_line in read for stem in of_line)
    gathered: dict[int, list[Utterance]] = {}
    earlier: set[str] = set()
    for place, (line, sentence, of_line) in enumerate(read):
        lately = (other for _, _, other in read[max(0, place - _ECHO) : place])
        is_repeated = line.text.casefold() in earlier or (
            line.role == "assistant" and any(of_line <= other for other in lately)
        )
        # "Yes" may answer several questions, and "When?" has no stems of its own.
        if is_repeated and not (line.is_short_answer or line.has_short_answer):
            continue
        earlier.add(line.text.casefold())
        worth = _rate_line(line, sentence, of_line, common) * (1 + _NEW * place / len(read))
        is_answer = line.role == "assistant"
        is_wish = not is_answer and line.text.endswith("?")
        short = line.has_short_answer
        utterance = Utterance(
            place, line.day, line.speaker, is_answer, is_wish, short, sentence, of_line, worth
        )
        gathered.setdefault(line.exchange, []).append(utterance)
    return [Exchange(utterances) for utterances in gathered.values()]


def _split_messages(messages: Sequence[PromptMessage]) -> Iterator[_Line]:
    by_users = " ".join(message.text for message in messages if message.role == "user")
    names = _SPEAKERS[is_cyrillic(by_users or " ".join(message.text for message in messages))]
    exchange = 0
    for message in messages:
        if message.role not in names:
            continue
        exchange += message.role == "user"
        speaker = names[message.role]
        if message.name:
            speaker = f"{speaker} ({' '.join(message.name.split())})"
        day = message.at.date()
        for text, worth in _rate_sentences(message, is_user=message.role == "user"):
            yield _Line(exchange, day, speaker, message.role, write_dates(text, find_dates(text, day)), worth)


def _split_summaries(messages: Sequence[PromptMessage]) -> Iterator[_Line]:
    names = _SPEAKERS[is_cyrillic(" ".join(_MARK.sub(" ", message.text) for message in messages))]
    for exchange, message in enumerate(messages):
        text = " ".join(message.text.split())
        marks = list(_MARK.finditer(text))
        begins = [*(mark.start() for mark in marks), len(text)]
        parts: list[tuple[re.Match[str] | None, str]] = [(None, text[: begins[0]])]
        parts += [(mark, text[mark.end() : end]) for mark, end in zip(marks, begins[1:], strict=True)]
        day: date | None = None
        for mark, part in parts:
            role = _ROLES[mark["who"]] if mark else "system"
            speaker = f"{names[role]}{mark['name'] or ''}" if mark else None
            day = date.fromisoformat(mark["day"]) if mark and mark["day"] else day
            for each, worth in _rate_sentences(message._replace(text=part), is_user=role != "assistant"):
                yield _Line(exchange, day if mark else None, speaker, role, each, worth)


def _rate_sentences(message: PromptMessage, *, is_user: bool) -> Iterator[tuple[str, float]]:
    """Yield the sentences of a message, each with its weight by speaker, question and statement.

    Sentences without a letter or digit, and marks of left-out text or used tools, are left out.
    """
    facts = [each.undated[:40] for each in find_statements(message)] if is_user else []
    for sentence in split_sentences(message.text):
        text = sentence.text
        if _NO_SPEECH.match(text) or not any(character.isalnum() for character in text):
            continue
        worth = _USER if is_user else 1.0
        if sentence.is_question:
            worth *= _WISH if is_user else _OFFER
        yield text, worth * (_STATEMENT if any(fact in text for fact in facts) else 1.0)


def _mark_answers(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines, with marks on questions that a user answers in a few words, and on these answers."""
    marked = list(lines)
    for place, (asked, answer) in enumerate(pairwise(lines)):
        if _is_answered_shortly(asked, answer):
            marked[place] = marked[place]._replace(has_short_answer=True)
            marked[place + 1] = answer._replace(is_short_answer=True)
    return marked


def _is_answered_shortly(asked: _Line, answer: _Line) -> bool:
    if not asked.text.endswith("?") or asked.speaker == answer.speaker or answer.text.endswith("?"):
        return False
    is_long = len(answer.text.split()) > _SHORT_ANSWER
    if answer.role == "assistant" or is_long or _OFFER_OF_HELP.match(asked.text):
        return False
    assent = _ASSENT.match(answer.text)
    if assent and assent.end() == len(answer.text):
        return not _OPEN_QUESTION.match(asked.text)
    return assent is not None or bool(_cut_filler(answer.text))


def _remove_courtesy(line: _Line) -> _Line | None:
    if line.is_short_answer:
        return line
    shown = _cut_courtesy(line.text)
    if not shown or (_OFFER_OF_HELP.match(shown) and line.role == "assistant"):
        return None
    return line._replace(text=shown)


def _cut_courtesy(text: str) -> str:
    """Return a sentence without courtesies and laughter at its beginning, and laughter at its end.

    If something was removed, the rest begins with a capital letter. A rest of a single word without a digit
    is removed, too, because it may be the name of the person addressed. The text is empty if nothing remains.
    """
    rest = _cut_filler(text)
    if rest == text.strip():
        return rest
    if len(rest.split()) < 2 and not any(map(str.isdigit, rest)):
        return ""
    return rest[:1].upper() + rest[1:]


def _cut_filler(text: str) -> str:
    """Return a sentence without courtesies and laughter at its beginning, and laughter at its end."""
    begin, told = 0, text
    if laughter := _LAUGHTER_AT_END.search(text):
        told = text[: laughter.start()].rstrip(" ,;—–-")
    while filler := _LAUGHTER.match(told, begin) or _COURTESY.match(told, begin):
        begin = filler.end()
    return told[begin:].strip()


def _rate_line(
    line: _Line, sentence: TokenizedSentence, of_line: frozenset[int], common: Counter[int]
) -> float:
    """Return the weight of a sentence in the choice for a summary.

    Words that other sentences share, names, numbers and the first person raise the weight. `common` counts
    the sentences with each stem.
    """
    shared = sum(1 + min(common[stem] - 1, 3) / 2 for stem in of_line)
    details = _DETAIL ** (
        min(len(sentence.details), _MOST_WEIGHED_DETAILS) + bool(_OF_ONESELF.search(line.text))
    )
    return line.worth * details * (shared + 0.1) / sqrt(sentence.words + 6)
