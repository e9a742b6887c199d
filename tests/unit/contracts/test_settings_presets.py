"""Presets: each is valid by itself and after any other preset, and sets the documented values."""

from functools import reduce
from itertools import permutations

import pytest

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import (
    NOTHING,
    Document,
    flatten_document,
    resolve_settings,
    set_value,
)
from mnemon_contracts.settings.presets import PRESETS, find_preset


def laid_on(document: Document, name: str) -> Document:
    values = find_preset(name).values
    return reduce(lambda found, setting: set_value(found, setting, values[setting]), values, document)


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_is_in_force_as_it_says(name: str) -> None:
    shown = flatten_document(resolve_settings(laid_on(NOTHING, name)).model_dump(mode="json"))
    assert {setting: shown[setting] for setting in PRESETS[name].values} == PRESETS[name].values


@pytest.mark.parametrize(("first", "second"), list(permutations(PRESETS, 2)))
def test_a_preset_may_follow_another(first: str, second: str) -> None:
    shown = flatten_document(
        resolve_settings(laid_on(laid_on(NOTHING, first), second)).model_dump(mode="json")
    )
    assert {setting: shown[setting] for setting in PRESETS[second].values} == PRESETS[second].values


def test_an_unknown_preset_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidBody, match="choose from: 000, 001"):
        find_preset("005")


def test_preset_001_sets_its_values() -> None:
    values = PRESETS["001"].values
    assert (values["dedupe.update_threshold"], values["dedupe.duplicate_threshold"]) == (0.85, 0.95)
    assert values["dedupe.require_similarity"] is True
    assert (values["retrieval.limit"], values["retrieval.threshold"]) == (5, 0.6)
    assert (values["limits.per_user"], values["retrieval.decay"]) == (1_000, False)


def test_preset_000_shows_last_messages_only() -> None:
    values = PRESETS["000"].values
    assert (values["recent_messages"], values["context.recent_limit"]) == (30, 30)
    assert values["context.language"] == "en", "the document writes `Tools used: ...` beside Russian messages"
    assert values["context.fact_types"] is False, "no sentence where no fact is kept"
    assert (values["context.sections.relevant"], values["context.conversation_hits"]) == (0, 0)


def test_preset_002_shows_plain_messages_and_three_summaries() -> None:
    values = PRESETS["002"].values
    assert values["time_stamps.enabled"] is False
    assert values["context.language"] == "en", (
        "the document names `User` and `Assistant` beside Russian messages"
    )
    assert values["context.sections.summaries"] == 600


def test_preset_004_shows_important_profile_facts() -> None:
    assert PRESETS["004"].values["context.key_facts"] == "high"


def test_preset_sets_the_language_of_fixed_words() -> None:
    languages = {name: values["context.language"] for name, (_, values) in PRESETS.items()}
    assert languages == {"000": "en", "001": "auto", "002": "en", "003": "en", "004": "auto"}
