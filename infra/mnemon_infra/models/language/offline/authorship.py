"""Authorship of sentences: whether a sentence tells something about the author of its message.

A text to translate, the words of a role, and a joke tell nothing about the author. Neither do Russian verbs
in the past tense that lack a pronoun, if their subject may be a person whom the text has named.
"""

import re
from collections.abc import Iterator
from typing import Final

from mnemon_infra.models.language.offline.rules import ENGLISH, RUSSIAN, LanguageRules, OtherPersonForms
from mnemon_infra.models.language.offline.sentences import Sentence, split_sentences, straighten_quotes

_LABEL: Final = re.compile(r"(?:[^\W\d_][\w'-]*|[A-ZА-ЯЁ][\w'-]* [A-ZА-ЯЁ][\w'-]*):\s*")
"""Name of a speaker or of a text before words that are not the author's: "Sam: ", "lyrics: "."""


def list_sentences(text: str) -> Iterator[tuple[Sentence, bool]]:
    """Yield each sentence of a message, with True if the sentence may tell something about the author."""
    has_task = False
    other: OtherPersonForms | None = None
    for sentence in split_sentences(text):
        language = RUSSIAN if sentence.is_cyrillic else ENGLISH
        plain = straighten_quotes(sentence.text)
        has_task = has_task or language.task.match(plain) is not None
        yield sentence, not (has_task or (other and is_about_other_person(plain, other, language)))
        if other and language.subject.search(plain):
            other = None
        other = find_other_person(plain, language) or other


def is_disclaimed(text: str, language: LanguageRules) -> bool:
    """Return whether a sentence says at its end that it is a joke, a figure of speech or not to be saved."""
    return any(match.end() == len(text) for match in language.disclaimer.finditer(text))


def takes_back(sentence: Sentence) -> bool:
    """Return whether a sentence begins with words by which the sentence before it does not count.

    Such words say that it is a joke, a figure of speech or not to be saved.
    """
    language = RUSSIAN if sentence.is_cyrillic else ENGLISH
    return language.disclaimer.match(sentence.text) is not None


def is_labelled(before: str) -> bool:
    """Return whether the words before a clause may name a speaker or a text: "Sam: I live in Leeds"."""
    return _LABEL.fullmatch(before) is not None


def find_other_person(text: str, language: LanguageRules) -> OtherPersonForms | None:
    """Return the forms of the gender of a person whom a text names besides its author.

    Return None if the text names no other person, or has a pronoun or a verb of the first person. For
    English, return None always: its verbs have a subject.
    """
    found = next((other for other in language.others if other.noun.search(text)), None)
    return found if found and not language.subject.search(text) else None


def is_about_other_person(clause: str, other: OtherPersonForms, language: LanguageRules) -> bool:
    """Return whether a clause may be about a person whom the text before it names.

    Such a clause has a past tense verb of `other`, without a pronoun or a verb of the first person before it.
    """
    past = other.past.search(clause)
    return past is not None and not language.subject.search(clause, 0, past.end())
