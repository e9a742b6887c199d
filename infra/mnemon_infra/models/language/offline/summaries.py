"""Extractive summaries: sentences of the messages, whole or cut, from every exchange if they fit.

Each exchange may have the same number of words: the largest number with which all exchanges fit into the
summary. When summaries are summarised, older ones may have fewer words than newer ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Final, NamedTuple

from mnemon_infra.models.language.offline.details import Detail
from mnemon_infra.models.language.offline.exchanges import Exchange, Utterance, split_exchanges
from mnemon_infra.models.language.port import PromptMessage

USUAL_WORDS: Final = 60
"""Maximum words of a summary, unless it would lose names, numbers or exchanges: then `MOST_WORDS` applies."""

MOST_WORDS: Final = 95
MOST_CHARACTERS: Final = 1000
"""`MOST_WORDS` and `MOST_CHARACTERS` limit any summary, with its dates and names of speakers."""

_SHARES: Final = (60, 50, 42, 36, 31, 27, 24, 21, 18, 16, 14, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
"""Maximum words of an exchange, tried in this order until all exchanges fit into the summary."""

_OF_THE_USER: Final = 0.6
"""Minimum share of an exchange's words that the user's weightiest sentence may have, even beside an answer.

The share applies if the exchange may have at least `_LEAST_FOR_BOTH` words.
"""

_LEAST_FOR_BOTH: Final = 10
"""Minimum words of an exchange for which more than one sentence is chosen."""

_LEAST_OF_A_SENTENCE: Final = 4
"""A sentence with names or numbers that does not fit is cut if at least twice this many words are left."""

_LEAST_STEMS: Final = 2
"""Minimum stems of an additional sentence, unless it has a name, number or short answer, or is a wish."""

_OLDER: Final = 0.75
_OLDEST: Final = 0.35
"""Factors for the words of each earlier summary, when summaries are summarised.

The newest summary may have all the words of a share, each older one `_OLDER` times as many as the next newer
one, but at least `_OLDEST` of the share.
"""

_MOST_DETAILS: Final = 6
_MOST_OF_AN_ANSWER: Final = 3
"""Maximum number of names and numbers of an exchange that are added to a summary that lacks them.

`_MOST_DETAILS` limits those of the user, `_MOST_OF_AN_ANSWER` those of the assistant.
"""

NOTHING_SAID: Final = "There were no words."


class _ShownSentence(NamedTuple):
    """A sentence of a summary, perhaps cut; `added` are names and numbers to show in brackets after it."""

    utterance: Utterance
    text: str
    added: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text} ({', '.join(self.added)})." if self.added else self.text


def write_summary(messages: Sequence[PromptMessage]) -> str:
    """Return a summary of messages, or of earlier summaries if no message is a user's or an assistant's.

    The summary has at most `USUAL_WORDS` words, or `MOST_WORDS` if `USUAL_WORDS` would lose names, numbers or
    exchanges. Without any words to summarise, the function returns `NOTHING_SAID`.
    """
    found = split_exchanges(messages)
    if not found:
        return NOTHING_SAID
    merges = not any(message.role in ("user", "assistant") for message in messages)
    usual = _fit_exchanges(found, USUAL_WORDS, merges=merges)
    if usual is None or _has_missing_details(found, usual):
        usual = _fit_exchanges(found, MOST_WORDS, merges=merges) or _fit_newest(found)
    return _write_text(_add_details(found, usual))


def _fit_exchanges(
    exchanges: Sequence[Exchange], max_words: int, *, merges: bool
) -> list[_ShownSentence] | None:
    """Choose sentences from every exchange; together, they have at most `max_words` words.

    Return None if this is impossible, or if an exchange would lose all its names and numbers.
    """
    if len(exchanges) > max_words:
        return None
    for share in _SHARES:
        pieces = []
        for place, exchange in enumerate(exchanges):
            age = len(exchanges) - 1 - place
            own = round(share * max(_OLDEST, _OLDER**age)) if merges else share
            pieces += _choose_sentences(exchange, max(1, own))
        text = _write_text(pieces)
        if _fits(text, max_words) and all(_represents_exchange(exchange, text) for exchange in exchanges):
            return pieces
    return None


def _represents_exchange(exchange: Exchange, text: str) -> bool:
    """Return whether a text has a name or number of an exchange; True if the exchange has none."""
    cores = {detail.core for each in exchange.utterances for detail in each.sentence.details}
    return not cores or any(core in text for core in cores)


def _fit_newest(exchanges: Sequence[Exchange]) -> list[_ShownSentence]:
    """Return one word of each exchange, for as many exchanges as fit into a summary.

    Exchanges with names or numbers take precedence over others, and newer exchanges over older ones.
    """
    ranked = sorted(enumerate(exchanges), key=lambda each: (each[1].has_details, each[0]), reverse=True)
    for count in range(min(len(ranked), MOST_WORDS), 0, -1):
        pieces = [piece for _, exchange in sorted(ranked[:count]) for piece in _choose_sentences(exchange, 1)]
        if _fits(_write_text(pieces), MOST_WORDS):
            return pieces
    return []


def _choose_sentences(exchange: Exchange, room: int) -> list[_ShownSentence]:
    """Return the most informative sentences of an exchange, in order, with at most `room` words."""
    ranked = sorted(exchange.utterances, key=lambda each: -each.worth)
    asked = [each for each in ranked if not each.is_answer]
    answered = [each for each in ranked if each.is_answer and not (asked and each.is_idle)]
    shown: list[_ShownSentence] = []
    if room < _LEAST_FOR_BOTH:
        ranked = [*asked, *answered]
        return [_clip_utterance(next((each for each in ranked if each.sentence.details), ranked[0]), room)]
    if asked:
        left = min(answered[0].sentence.words, round(room * (1 - _OF_THE_USER))) if answered else 0
        shown.append(_clip_utterance(asked[0], room - left))
    if answered:
        shown.append(_clip_utterance(answered[0], room - _count_words(shown)))
    for each in (*asked[1:], *answered[1:]):
        rest = room - _count_words(shown)
        tells = each.sentence.details or each.is_wish or each.has_short_answer
        if len(each.stems) < _LEAST_STEMS and not tells:
            continue
        if each.sentence.words <= rest or (each.sentence.details and rest >= 2 * _LEAST_OF_A_SENTENCE):
            shown.append(_clip_utterance(each, rest))
    return sorted(shown, key=lambda piece: piece.utterance.place)


def _clip_utterance(utterance: Utterance, words: int) -> _ShownSentence:
    return _ShownSentence(utterance, utterance.sentence.clip(max(words, 1)))


def _count_words(pieces: Sequence[_ShownSentence]) -> int:
    return sum(len(piece.text.split()) for piece in pieces)


def _find_missing_details(
    exchange: Exchange, pieces: Sequence[_ShownSentence]
) -> Iterator[tuple[Utterance, Detail]]:
    """Yield names and numbers of an exchange that are in none of `pieces`, each with its sentence.

    Only the first `_MOST_DETAILS` of the user and the first `_MOST_OF_AN_ANSWER` of the assistant count.
    """
    text = " ".join(str(piece) for piece in pieces)
    for is_answer, most in ((False, _MOST_DETAILS), (True, _MOST_OF_AN_ANSWER)):
        details = {
            detail.core: (each, detail)
            for each in exchange.utterances
            if each.is_answer == is_answer
            for detail in each.sentence.details
        }
        yield from (found for core, found in list(details.items())[:most] if core not in text)


def _has_missing_details(exchanges: Sequence[Exchange], pieces: Sequence[_ShownSentence]) -> bool:
    return any(any(_find_missing_details(exchange, pieces)) for exchange in exchanges)


def _add_details(exchanges: Sequence[Exchange], pieces: Sequence[_ShownSentence]) -> list[_ShownSentence]:
    """Return the pieces with missing names and numbers, as far as `MOST_WORDS` and `MOST_CHARACTERS` allow.

    Exchanges take turns, newest first. The sentence of a missing name or number is added whole. If the
    sentence does not fit or is shown already, the name or number alone is added in brackets, after a shown
    sentence of the same speaker in the exchange. If there is no room or no such sentence, the name or number
    is left out.
    """
    shown = {piece.utterance.place: piece for piece in pieces}
    waiting = [(exchange, list(_find_missing_details(exchange, pieces))) for exchange in reversed(exchanges)]
    while any(missing for _, missing in waiting):
        for exchange, missing in waiting:
            if not missing:
                continue
            utterance, detail = missing.pop(0)
            if any(detail.core in str(piece) for piece in shown.values()):
                continue
            for changed in _list_additions(exchange, utterance, detail, shown):
                if _fits(_write_text(_sort_pieces({**shown, **changed})), MOST_WORDS):
                    shown |= changed
                    break
    return _sort_pieces(shown)


def _list_additions(
    exchange: Exchange, utterance: Utterance, detail: Detail, shown: Mapping[int, _ShownSentence]
) -> Iterator[dict[int, _ShownSentence]]:
    """Yield changes to `shown`, each of which is enough to show `detail`.

    The first change adds the sentence of the detail, the second the detail alone, in brackets. A change that
    is not possible is left out.
    """
    if utterance.place not in shown:
        yield {utterance.place: _clip_utterance(utterance, utterance.sentence.words)}
    same = [
        each.place
        for each in exchange.utterances
        if each.place in shown and each.is_answer == utterance.is_answer
    ]
    if same:
        place = utterance.place if utterance.place in same else same[-1]
        piece = shown[place]
        yield {place: piece._replace(added=(*piece.added, detail.text))}


def _sort_pieces(shown: Mapping[int, _ShownSentence]) -> list[_ShownSentence]:
    return [shown[place] for place in sorted(shown)]


def _fits(text: str, max_words: int) -> bool:
    return len(text.split()) <= max_words and len(text) <= MOST_CHARACTERS


def _write_text(pieces: Sequence[_ShownSentence]) -> str:
    parts: list[str] = []
    day: date | None = None
    speaker: str | None = None
    for piece in pieces:
        said = piece.utterance
        is_another_day = said.day is not None and said.day != day
        if is_another_day:
            day = said.day
            parts.append(f"[{day}]")
        if said.speaker and (said.speaker != speaker or is_another_day):
            parts.append(f"{said.speaker}:")
        speaker = said.speaker
        parts.append(str(piece))
    return " ".join(parts)
