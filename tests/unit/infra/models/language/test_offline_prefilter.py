"""Prefilter of the rules' patterns: it may only leave out patterns that cannot match."""

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon_infra.models.language.offline.prefilter import IRREGULAR, PatternPrefilter, find_fragments
from mnemon_infra.models.language.offline.rules import ENGLISH, RUSSIAN, LanguageRules
from tests.support.hypothesis_profiles import scale_examples

LANGUAGES = pytest.mark.parametrize("language", [ENGLISH, RUSSIAN], ids=["english", "russian"])


@pytest.mark.long
@LANGUAGES
@given(drawn=st.data())
@settings(max_examples=scale_examples(50))
def test_candidates_include_each_rule_that_matches(language: LanguageRules, drawn: st.DataObject) -> None:
    drawn_rule = drawn.draw(st.sampled_from(language.rules))
    text = drawn.draw(st.from_regex(drawn_rule.pattern))

    candidates = list(language.find_candidates(text))

    assert [rule for rule in language.rules if rule.pattern.search(text) and rule not in candidates] == []
    assert drawn_rule in candidates


@LANGUAGES
def test_each_rule_has_fragments(language: LanguageRules) -> None:
    assert [rule.name for rule in language.rules if not find_fragments(rule.pattern)] == []


def test_sentence_without_fragments_has_no_candidates() -> None:
    assert list(ENGLISH.find_candidates("Zinc cups fell.")) == []


@pytest.mark.long
def test_each_character_matches_its_own_lower_case_or_is_irregular() -> None:
    letters = {
        letter
        for language in (ENGLISH, RUSSIAN)
        for rule in language.rules
        for letter in "".join(find_fragments(rule.pattern))
    }
    everything = "".join(chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)

    odd = {
        character
        for letter in letters
        for character in re.findall(re.escape(letter), everything, re.IGNORECASE)
        if character.lower() != letter and not IRREGULAR.match(character)
    }

    assert odd == set()


@pytest.mark.parametrize(
    ("pattern", "fragments"),
    [
        ("my name|i am called", {"my name", "i am called"}),
        ("(?:so )?we (?:ski|skate)", {"we sk"}),
        ("(?:Dogs?|cats?)", {"dog", "cat"}),
        ("(?:abc){2,}x?", {"abc"}),
        ("(?:word)?", set()),
        (r"\w+", set()),
        ("word|", set()),
        ("word|x", set()),
    ],
)
def test_fragments_are_texts_that_each_match_contains(pattern: str, fragments: set[str]) -> None:
    assert find_fragments(re.compile(pattern, re.IGNORECASE)) == fragments


def test_pattern_without_fragments_is_always_a_candidate() -> None:
    prefilter = PatternPrefilter([re.compile("cat", re.IGNORECASE), re.compile(r"\d", re.IGNORECASE)])

    assert list(prefilter.find_candidates("dog")) == [1]
    assert list(prefilter.find_candidates("CAT")) == [0, 1]


def test_text_with_irregular_letters_has_all_candidates() -> None:
    prefilter = PatternPrefilter([re.compile("kiss", re.IGNORECASE), re.compile("dog", re.IGNORECASE)])

    assert list(prefilter.find_candidates("kı\u017fs")) == [0, 1]
