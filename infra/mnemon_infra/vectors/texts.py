"""Texts by which a search finds a point: one for its words, one for its meaning. No I/O."""

import re
from datetime import datetime
from typing import Final, NamedTuple

from mnemon_infra.models.months import ENGLISH, RUSSIAN

_CYRILLIC: Final = re.compile("[\u0400-\u04ff]")


class Texts(NamedTuple):
    """The texts of a point: `words` for its sparse vector, `meaning` for its dense vector."""

    words: str
    meaning: str


def build_message_texts(content: str, name: str | None, sent_at: datetime) -> Texts:
    """Return the texts of a message. Both have `name`, if it is given; only the text for words has the date.

    The date comes first, as `8 May 2023`. The month is in Russian if the content has a Cyrillic letter, else
    in English.
    """
    said = f"{name}: {content}" if name else content
    months = RUSSIAN if _CYRILLIC.search(content) else ENGLISH
    return Texts(f"{sent_at.day} {months[sent_at.month - 1]} {sent_at.year} {said}", said)


def build_chunk_texts(text: str, title: str | None) -> Texts:
    """Return the texts of a chunk of a document, each under the document's title."""
    titled = f"{title}\n{text}" if title else text
    return Texts(titled, titled)
