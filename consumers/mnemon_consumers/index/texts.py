"""By what a thing is found: the words of one text, the meaning of another. No I/O."""

import re
from datetime import datetime
from typing import Final, NamedTuple

from mnemon_infra.models.months import ENGLISH, RUSSIAN

_CYRILLIC: Final = re.compile("[\u0400-\u04ff]")


class Texts(NamedTuple):
    """What goes into the term weights, and what goes into the vector."""

    words: str
    meaning: str


def message(content: str, name: str | None, sent_at: datetime) -> Texts:
    """A message: who said it belongs to what it says. Its date is found by words only.

    The date stands first, as `8 May 2023`, with the month in the language of the message.
    """
    said = f"{name}: {content}" if name else content
    months = RUSSIAN if _CYRILLIC.search(content) else ENGLISH
    return Texts(f"{sent_at.day} {months[sent_at.month - 1]} {sent_at.year} {said}", said)


def chunk(text: str, title: str | None) -> Texts:
    """A piece of a document, each under the title of the whole."""
    titled = f"{title}\n{text}" if title else text
    return Texts(titled, titled)
