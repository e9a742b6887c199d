"""Sparse vectors of words: BM25 with Qdrant's encoder, with one language for each script.

These vectors reflect term frequency and text length; a search multiplies by inverse document frequency. The
same text gives the same vector in every process.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from qdrant_edge import Bm25, Bm25Config, DisabledStemmer, SparseVector, StopwordsSet, TokenizerType

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.models.scripts import HAN, UNSPACED

K = 0.9
"""BM25's k: the weight of repetitions of a word.

The weight is low because messages are short and repeat few words.
"""

B = 0.75
"""BM25's b: the penalty for long texts. Answers of an assistant have hundreds of words; among short messages,
searches find as much with any b from 0.1 to 0.9."""

RECENT_QUERIES = 64
"""Number of queries whose weights are cached: a search weighs its query several times for each scope."""

USUAL_WORDS = 50.0
"""Number of words of an average text, without stop words."""

VERSION = 6
"""Version of the term weights, and of the static vectors of `wordllama`.

Increase the version when `K`, `B`, `USUAL_WORDS`, the stop words, the splitting into terms or the concepts
change, or when `wordllama` gives texts other vectors.
"""

ENGLISH_STOP_WORDS = """
a about above after again against ain all am an and any are aren as at be because been before being below
between both but by can couldn d did didn do does doesn doing down during each few for from further had hadn
has hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself
just ll m ma me mightn more most mustn my myself needn no nor not now o of off on once only or other our ours
ourselves out over own re s same shan she should shouldn so some such t than that the their theirs them
themselves then there these they this those through to too under until up ve very was wasn we were weren what
when where which while who whom why with wouldn y you your yours yourself yourselves
"""
"""Words that searches leave out in English: those of the Natural Language Toolkit, without names and verbs
such as "will", "don" and "won". With a longer list, searches found less.
"""

RUSSIAN_STOP_WORDS = """
и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне было вот от
меня еще нет о из ему теперь когда даже ну вдруг ли если уже или ни быть был него до вас нибудь опять уж вам
ведь там потом себя ничего ей может они тут где есть надо ней для мы тебя их чем была сам чтоб без будто чего
раз тоже себе под будет ж тогда кто этот того потому этого какой совсем ним здесь этом один почти мой тем
чтобы нее сейчас были куда зачем всех никогда можно при наконец два об другой хоть после над больше тот через
эти нас про всего них какая много разве три эту моя впрочем хорошо свою этой перед иногда лучше чуть такой им
более всегда конечно всю между ага будем будете будешь буду будут будучи вами ваш ваша ваше вашего вашей
вашем ваши вашу вообще всем всеми всему дабы едва ежели ею ибо именно иначе итак ихний каждая каждое каждые
каждый какие каким каких каково какого какое какую кем кого кому которая которого которое которой котором
которому которую которые который которым которых кроме ладно либо лишь мной мною мое моего моей моем моему
мои моим моих мою нами наш наша наше нашего нашей нашем наши наших нашу нею ними однако оно очень пожалуйста
пока поскольку почему поэтому просто пускай пусть ради сами самим само самого свое своего своей своем свои
своим своих сколько спасибо такая также таки такие таков такого такое твое твоего твоей твоем твои твоим
твоих твой твою твоя тебе тобой тобою той тому тою туда хотя чей чему чье чьи чья эта этим этими этих это
"""
"""Words that searches leave out in Russian: those of the Natural Language Toolkit, without the name «Том»
(Tom) and «нельзя» (must not), and further pronouns and particles.
"""

CYRILLIC = re.compile(r"[\u0400-\u052f]+")
GREEK = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]+")
ARABIC = re.compile(r"[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff]{1,1000}")
"""Arabic words, and the parts of words of more than 1,000 letters: the time of the Arabic stemmer grows with
the square of the length of a word."""

HAN_CHARACTER = re.compile(f"[{HAN}]")

YO = str.maketrans("ёЁ", "еЕ")


def weigh_document(text: str) -> Sparse:
    """Return the weights of a text's words, without stop words; empty if none is left, as for an emoji."""
    return _merge_vectors(encoder.embed_document(words) for encoder, words in _split_by_script(text))


@lru_cache(RECENT_QUERIES)
def weigh_query(text: str) -> Sparse:
    """Return the weights of a query's words, without stop words; each word weighs 1."""
    return _merge_vectors(encoder.embed_query(words) for encoder, words in _split_by_script(text))


def _build_encoder(language: str, stop_words: str | None = None, *, ascii_folding: bool = False) -> Bm25:
    return Bm25(
        Bm25Config(
            k=K,
            b=B,
            avg_len=USUAL_WORDS,
            language=language,
            stopwords=None if stop_words is None else StopwordsSet(set(), set(stop_words.split())),
            ascii_folding=ascii_folding,
        )
    )


_OTHERS = _build_encoder("english", ENGLISH_STOP_WORDS, ascii_folding=True)
"""Encoder for Latin script, numbers, and scripts without an encoder of their own."""

_LANGUAGES = (
    (
        CYRILLIC,
        _build_encoder("russian", RUSSIAN_STOP_WORDS),
    ),
    (GREEK, _build_encoder("greek")),
    (ARABIC, _build_encoder("arabic")),
)

_GRAMS = Bm25(
    Bm25Config(
        k=K,
        b=B,
        avg_len=USUAL_WORDS,
        tokenizer=TokenizerType.Whitespace,
        stemmer=DisabledStemmer(),
        stopwords=StopwordsSet(),
    )
)


def _split_by_script(text: str) -> Iterator[tuple[Bm25, str]]:
    """Yield each script's encoder with the words of the text in that script, in one string.

    For scripts that `UNSPACED` matches, the results of `_split_grams` take the place of words.
    """
    if text.isascii():
        yield _OTHERS, text
        return
    rest = unicodedata.normalize("NFKC", text).translate(YO)
    for script, encoder in _LANGUAGES:
        if words := script.findall(rest):
            yield encoder, " ".join(words)
            rest = script.sub(" ", rest)
    if runs := UNSPACED.findall(rest):
        yield _GRAMS, " ".join(gram for run in runs for gram in _split_grams(run))
        rest = UNSPACED.sub(" ", rest)
    yield _OTHERS, rest


def _split_grams(run: str) -> Iterator[str]:
    """Yield every pair of neighbouring characters, and every Chinese character.

    A word segmenter is not used, because it may split a query differently from a text.
    """
    yield from map("".join, pairwise(run))
    yield from HAN_CHARACTER.findall(run)


def _merge_vectors(vectors: Iterable[SparseVector]) -> Sparse:
    first, *others = vectors
    if not others:
        return Sparse(first.indices, first.values)
    weights = dict(zip(first.indices, first.values, strict=True))
    for vector in others:
        for index, value in zip(vector.indices, vector.values, strict=True):
            weights[index] = weights.get(index, 0.0) + value
    return Sparse(list(weights), list(weights.values()))
