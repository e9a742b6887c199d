"""Prefilter of patterns: finds the few patterns that can match a text, so that the others need not run.

A pattern of `rules.py` has hundreds of alternatives that ignore case, and most sentences match none. Each
match of a pattern contains at least one of its fragments: short texts that the prefilter derives from the
pattern. A text is searched for the fragments of all patterns at once.
"""

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final

GRAM: Final = 3
"""Maximum characters of a gram, the part of a fragment by which the fragment is looked up."""

IRREGULAR: Final = re.compile("[\u0130\u0131\u017f\u1c80-\u1c88]")
"""Characters that `re.IGNORECASE` equates with a letter but `str.lower` does not, such as the long s."""

_parse: Final = import_module("re._parser").parse
"""The parser of the standard library. The module `sre_parse`, its public name until 3.10, is deprecated."""


class PatternPrefilter:
    """Prefilter that finds the patterns that can match a text, among them all patterns without fragments.

    Args:
        patterns: the patterns, compiled with `re.IGNORECASE`.
    """

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        self._all = range(len(patterns))
        always: list[int] = []
        by_gram: dict[str, dict[str, list[int]]] = {}
        for number, pattern in enumerate(patterns):
            fragments = find_fragments(pattern)
            if not fragments:
                always.append(number)
            for fragment in fragments:
                by_gram.setdefault(_choose_gram(fragment), {}).setdefault(fragment, []).append(number)
        self._always = frozenset(always)
        self._fragments = {gram: tuple(fragments.items()) for gram, fragments in by_gram.items()}
        self._grams = frozenset(by_gram)
        self._sizes = sorted({len(gram) for gram in by_gram})

    def find_candidates(self, text: str) -> Iterable[int]:
        """Return the indices of the patterns that can match within a text, ascending."""
        if IRREGULAR.search(text):
            return self._all
        lowered = text.lower()
        found = set(self._always)
        for size in self._sizes:
            grams = [lowered[begin : begin + size] for begin in range(len(lowered) - size + 1)]
            for gram in self._grams.intersection(grams):
                for fragment, numbers in self._fragments[gram]:
                    if fragment in lowered:
                        found.update(numbers)
        return sorted(found)


def find_fragments(pattern: re.Pattern[str]) -> frozenset[str]:
    """Return lower-case texts such that each match of a pattern contains at least one of them.

    Return an empty set if the pattern has no such texts of at least two characters.
    """
    fragments = _find_fragments(_parse(pattern.pattern, pattern.flags))
    return fragments if all(len(fragment) > 1 for fragment in fragments) else frozenset()


def _find_fragments(parsed: Iterable[tuple[Any, Any]]) -> frozenset[str]:
    """Return texts such that each match of a parsed sequence contains at least one of them.

    The texts are those of one part of the sequence: the part whose shortest text is the longest. Return an
    empty set if no part has such texts.
    """
    known: list[frozenset[str]] = []
    run = ""
    for operation, argument in parsed:
        if str(operation) == "LITERAL":
            run += chr(argument)
            continue
        known += [frozenset({run.lower()}), _find_fragments_of_part(str(operation), argument)]
        run = ""
    known.append(frozenset({run.lower()}))
    telling = [fragments for fragments in known if fragments and "" not in fragments]
    return max(
        telling, key=lambda fragments: (min(map(len, fragments)), -len(fragments)), default=frozenset()
    )


def _find_fragments_of_part(operation: str, argument: Any) -> frozenset[str]:
    match operation:
        case "BRANCH":
            branches = [_find_fragments(branch) for branch in argument[1]]
            return frozenset().union(*branches) if all(branches) else frozenset()
        case "SUBPATTERN":
            return _find_fragments(argument[-1])
        case "MAX_REPEAT" | "MIN_REPEAT" if argument[0]:
            return _find_fragments(argument[-1])
    return frozenset()


def _choose_gram(fragment: str) -> str:
    """Return the gram by which a fragment is looked up: at most `GRAM` characters of the fragment.

    The first gram without a space is preferred, because it is rarer in texts.
    """
    grams = [fragment[begin : begin + GRAM] for begin in range(max(1, len(fragment) - GRAM + 1))]
    return next((gram for gram in grams if " " not in gram), grams[0])
