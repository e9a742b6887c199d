"""Embedder with static vectors of tokens, from the wheel `wordllama`, and of Russian words, from navec.

The vector of a text is the sum of the vectors of its tokens and Russian words. The embedder needs no network.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import Final, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer

from mnemon_infra.models.embedders.russian_vectors import (
    WORD,
    are_russian_vectors_loaded,
    are_russian_vectors_loading,
    fold_marks,
    load_russian_vectors,
)
from mnemon_infra.models.embedding import (
    LETTER,
    CorpusStatistics,
    EmbeddingNotConfigured,
    Thresholds,
    normalise_length,
)
from mnemon_infra.models.llama_tokenizer import find_package_folder, load_llama_tokenizer

MODEL = "l2_supercat_256"

THRESHOLDS = Thresholds(
    update=0.72,
    duplicate=0.97,
    relevant=0.25,
    relevant_fact=0.2,
    update_other=1.01,
    trust_other=0.1,
    answerable=0.35,
)
"""Thresholds from `mnemon calibrate` on the labelled pairs of `bench`, for pairs that alignment leaves open.

95 % of the English pairs with a similarity of at least 0.66 are alike; no pair that differs reaches 0.72. No
similarity separates Russian pairs that are alike from others, so similarity merges nothing in Russian. In
scripts other than Latin and Cyrillic, tokens are single letters or bytes, and similarity decides nothing.

With 0.2 for facts, the first five hits of `just measure-facts` have 6 % more of the answers than with 0.25
(held-out users), and 3 of 45 more questions without an answer get a fact. With 0.2 for messages, too,
`answerable` would cost 0.022 of recall@10 on LoCoMo.

The value of `answerable` costs at most 0.02 of recall@10 on each set of conversations of
`just fit-answerability`.
"""

LONGEST = 8_000
"""Maximum characters of a text that are read: the mean of more tokens would not represent the text."""

AT_ONCE = 256
"""Maximum number of texts in one call of the tokenizer, which copies them under the interpreter lock."""

IN_PLACE = 8_000
"""Maximum characters of all texts of a call that are read in the caller's thread, in 2 ms.

A call with more characters uses another thread.
"""

RUSSIAN_IN_PLACE = 1_000
"""`IN_PLACE` for texts with Cyrillic words, which take 15 µs for each word that is not cached."""

SIF_A = 1e-3
"""Smooth inverse frequency: a token with this share of all tokens has half the maximum weight."""

PRIOR_TOKENS = 5_000
"""Number of the tenant's tokens that weigh as much as the general prior: a few hundred messages."""

FIRST_MERGED, FIRST_CHARACTER = 259, 29_871
"""Positions in Llama 2's vocabulary of the first merged token and of the first single character.

Tokens of single bytes come before both. Merged tokens and single characters are each sorted by frequency.
"""

MATCHED = 1_500
"""Maximum characters of a text whose tokens are compared with a query's tokens."""

MATCHED_IN_PLACE = 10_000
"""Maximum number of tokens of texts that are compared in the caller's thread, in 2 ms."""

TOKENIZED = 8_000
"""Maximum number of texts whose tokens are cached for comparison: 3 MB of short messages, at most 15 MB."""

_NOT_LATIN: Final = re.compile(r"[^\x00-\u024f]+")
"""Text in scripts other than Latin.

Tokens of `wordllama` are parts of its words: "Мост" and "мост" have different tokens, whose vectors are not
similar.
"""


EmbeddingResult = TypeVar("EmbeddingResult")


class WordLlama:
    """Embedder that sums the vectors of a text's tokens; in a query, rare tokens weigh more.

    Words in Cyrillic get the vectors of `RussianVectors` instead of those of their tokens, and count by their
    share of the text's letters. Tokens of stored texts are not weighted, so that vectors stay valid when the
    frequencies of a tenant's words change.

    Attributes:
        model, dimension, thresholds, is_loading: see `Embedder`.
    """

    model = f"wordllama/{MODEL}"
    thresholds = THRESHOLDS

    def __init__(self, tokenizer: Tokenizer, table: NDArray[np.float32]) -> None:
        """Create the embedder from a tokenizer and a table of vectors, one row for each token."""
        self._tokenizer = tokenizer
        self._table = table
        self._prior = _estimate_shares(len(table)) * PRIOR_TOKENS
        self._even = np.ones(LONGEST * 5, dtype=np.float32)
        self._scales = 1 / np.maximum(np.linalg.norm(table, axis=1), np.finfo(np.float32).tiny)
        self._distinct: LRUCache[str, NDArray[np.int32]] = LRUCache(TOKENIZED)
        self._usual = self._compute_rarity(np.zeros(len(table)))

    @property
    def dimension(self) -> int:
        return int(self._table.shape[1])

    @property
    def is_loading(self) -> bool:
        return are_russian_vectors_loading()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors to store, one row for each text, of length 1.

        The vector of a text does not depend on the other texts. Only the first 8,000 characters of a text
        count. A text of only white space gives zeros, which are similar to no other vector.
        """
        return await self._embed_or_offload(texts, None)

    async def compute_statistics(self, texts: Sequence[str]) -> CorpusStatistics:
        """Return the rarity of tokens in a tenant's texts."""
        return CorpusStatistics(self._compute_rarity(await _run_or_offload(self._count_tokens, texts)))

    async def embed_query(self, text: str, statistics: CorpusStatistics | None = None) -> NDArray[np.float32]:
        """Return the vector of a query, of length 1, or all zeros for white space.

        Without statistics, the general rarity of tokens applies.
        """
        weights = self._usual if statistics is None else statistics.weights
        (vector,) = await self._embed_or_offload([text], weights)
        return np.asarray(vector, dtype=np.float32)

    async def match_tokens(
        self, query: str, texts: Sequence[str], statistics: CorpusStatistics | None = None
    ) -> NDArray[np.float32]:
        """Return how well the tokens of each text match the tokens of a query, from 0 to 1.

        The result is the mean, over the query's tokens, of the cosine similarity to the most similar token of
        the text. Rare tokens weigh more, and a negative similarity counts as 0.

        Source: Khattab and Zaharia, 2020, "ColBERT: Efficient and Effective Passage Search via Contextualized
        Late Interaction over BERT"; here the vectors are static. Only the first 1,500 characters of a text
        count. Without statistics, the general rarity of tokens applies. Letter case counts only in Latin
        script.
        """
        begins = [text[:MATCHED] for text in texts]
        cached = {text: self._distinct.get(text) for text in begins}
        distinct = {text: tokens for text, tokens in cached.items() if tokens is not None}
        if unknown := [text for text in cached if text not in distinct]:
            found = await _run_or_offload(self._find_distinct_tokens, unknown)
            self._distinct.update(found)
            distinct |= found
        weights = self._usual if statistics is None else statistics.weights
        (asked,) = self._tokenize_texts([_fold_case(query)])
        compute = partial(self._match_tokens, asked, weights[asked], [distinct[text] for text in begins])
        if sum(map(len, distinct.values())) <= MATCHED_IN_PLACE:
            return compute()
        return await asyncio.to_thread(compute)

    def _find_distinct_tokens(self, texts: Sequence[str]) -> dict[str, NDArray[np.int32]]:
        found = self._tokenize_texts([_fold_case(text) for text in texts])
        return {text: np.unique(tokens) for text, tokens in zip(texts, found, strict=True)}

    def _match_tokens(
        self, asked: NDArray[np.int32], weights: NDArray[np.float32], texts: Sequence[NDArray[np.int32]]
    ) -> NDArray[np.float32]:
        """Return the result of `match_tokens` from token ids, with a weight for each token of the query."""
        matches = np.zeros(len(texts), dtype=np.float32)
        filled = [row for row, tokens in enumerate(texts) if len(tokens)]
        if not len(asked) or not filled:
            return matches
        known, places = np.unique(np.concatenate([texts[row] for row in filled]), return_inverse=True)
        cosines = self._table.take(asked, axis=0) @ self._table.take(known, axis=0).T
        cosines *= np.outer(self._scales[asked], self._scales[known])
        np.maximum(cosines, 0.0, out=cosines)
        starts = np.cumsum([0, *(len(texts[row]) for row in filled[:-1])])
        matches[filled] = weights @ np.maximum.reduceat(cosines[:, places], starts, axis=1) / weights.sum()
        return matches

    def embed_word(self, word: str) -> NDArray[np.float32]:
        """Return the sum of the vectors of a word's tokens, normalised to length 1.

        Russian words, too, get the vectors of their tokens, unlike in `embed`.
        """
        (vector,) = self._sum_tokens([word], None)
        return np.asarray(vector, dtype=np.float32)

    async def _embed_or_offload(
        self, texts: Sequence[str], weights: NDArray[np.float32] | None
    ) -> NDArray[np.float32]:
        """Return the vectors of texts, computed in another thread if that takes long.

        `weights` has a weight for each token of `wordllama`; with None, each counts the same.
        """
        russian = [
            row for row, text in enumerate(texts) if not text.isascii() and WORD.search(text, 0, LONGEST)
        ]
        work = partial(self._embed_texts, weights=weights, russian=russian)
        is_long = sum(len(texts[row]) for row in russian) > RUSSIAN_IN_PLACE
        if is_long or (russian and not are_russian_vectors_loaded()):
            return await asyncio.to_thread(work, texts)
        return await _run_or_offload(work, texts)

    def _embed_texts(
        self, texts: Sequence[str], weights: NDArray[np.float32] | None, russian: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return the vectors of texts; `russian` has the rows of texts with Cyrillic words."""
        if not russian:
            return self._sum_tokens(texts, weights)
        words = load_russian_vectors(self.dimension)
        others = list(texts)
        for row in russian:
            others[row] = WORD.sub(" ", texts[row][:LONGEST])
            # Without letters, the rest has digits and punctuation marks, which say little as tokens.
            if not LETTER.search(others[row]):
                others[row] = ""
        sums = self._sum_tokens(others, weights)
        for row in russian:
            text = fold_marks(texts[row][:LONGEST])
            letters, cyrillic = len(LETTER.findall(others[row])), sum(map(len, WORD.findall(text)))
            share = letters / (letters + cyrillic)
            sums[row] = share * sums[row] + (1 - share) * normalise_length(words.sum_words(text))
        return normalise_length(sums)

    def _sum_tokens(self, texts: Sequence[str], weights: NDArray[np.float32] | None) -> NDArray[np.float32]:
        sums = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, tokens in enumerate(self._tokenize_texts(texts)):
            each = self._even[: len(tokens)] if weights is None else weights[tokens]
            sums[row] = each @ self._table.take(tokens, axis=0)
        return normalise_length(sums)

    def _count_tokens(self, texts: Sequence[str]) -> NDArray[np.float64]:
        counts = np.zeros(len(self._table))
        for tokens in self._tokenize_texts(texts):
            np.add.at(counts, tokens, 1)
        return counts

    def _compute_rarity(self, counts: NDArray[np.float64]) -> NDArray[np.float32]:
        share = (counts + self._prior) / (counts.sum() + PRIOR_TOKENS)
        weights: NDArray[np.float32] = (SIF_A / (SIF_A + share)).astype(np.float32)
        return weights

    def _tokenize_texts(self, texts: Sequence[str]) -> Iterator[NDArray[np.int32]]:
        for start in range(0, len(texts), AT_ONCE):
            some = [text[:LONGEST].strip() for text in texts[start : start + AT_ONCE]]
            for encoding in self._tokenizer.encode_batch_fast(some, add_special_tokens=False):
                yield np.asarray(encoding.ids, dtype=np.int32)


@cache
def load_wordllama() -> WordLlama:
    """Return the model, loaded once per process in 0.1 s.

    From then on the process computes products of vectors in one thread: on two cores, several threads made
    the small products of a search ten times as slow.

    Raises:
        EmbeddingNotConfigured: the package is not installed.
    """
    folder, tokenizer = find_package_folder(), load_llama_tokenizer()
    if folder is None or tokenizer is None:
        raise EmbeddingNotConfigured(
            'wordllama is not installed: pip install "mnemon[server]", or choose another embedding.provider'
        )
    from safetensors.numpy import load_file  # comes with wordllama

    threadpool_limits(1, user_api="blas")
    weights = load_file(folder / "weights" / f"{MODEL}.safetensors")["embedding.weight"]
    return WordLlama(tokenizer, weights.astype(np.float32))


@cache
def find_wordllama() -> WordLlama | None:
    """Return the model, loaded once per process; None if the package is not installed."""
    try:
        return load_wordllama()
    except EmbeddingNotConfigured:
        return None


WORDS = 20_000
"""Maximum number of words whose vectors a process caches: 20 MB."""


@cache
def load_word_similarity() -> Callable[[str, str], float] | None:
    """Return a function that compares two words by the cosine similarity of static vectors.

    Return None if the package is not installed.
    """
    model = find_wordllama()
    if model is None:
        return None

    @lru_cache(maxsize=WORDS)
    def embed_word(word: str) -> NDArray[np.float32]:
        return model.embed_word(word)

    @lru_cache(maxsize=10 * WORDS)
    def compare_words(a: str, b: str) -> float:
        return float(embed_word(a) @ embed_word(b))

    return compare_words


async def _run_or_offload(
    work: Callable[[Sequence[str]], EmbeddingResult], texts: Sequence[str]
) -> EmbeddingResult:
    """Return `work(texts)`, computed in another thread if the texts have more than `IN_PLACE` characters."""
    if sum(map(len, texts)) <= IN_PLACE:
        return work(texts)
    return await asyncio.to_thread(work, texts)


def _estimate_shares(tokens: int) -> NDArray[np.float64]:
    """Return each token's estimated share of all tokens, from its position in the vocabulary (Zipf's law)."""
    place = np.arange(tokens, dtype=np.float64)
    rank = np.where(place < FIRST_CHARACTER, place - FIRST_MERGED + 1, place - FIRST_CHARACTER + 1)
    rank[:FIRST_MERGED] = tokens
    share: NDArray[np.float64] = 1 / rank
    share /= share.sum()
    return share


def _fold_case(text: str) -> str:
    return text if text.isascii() else _NOT_LATIN.sub(lambda found: found[0].lower(), text)
