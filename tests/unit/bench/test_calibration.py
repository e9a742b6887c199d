"""Calibration of embedders: the labelled pairs, the measured thresholds and the thresholds in the code."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon_bench.quality.calibration import (
    PRECISION,
    InvalidPairs,
    LabelledPair,
    calibrate_embedder,
    read_pairs,
)
from mnemon_infra.models.embedders.wordllama import load_wordllama
from mnemon_infra.models.embedding import TRANSFORMER, CorpusStatistics

PAIRS = Path(__file__).parents[3] / "bench" / "mnemon_bench" / "quality" / "datasets" / "pairs.jsonl"


class Given:
    """An embedder with given similarities: the second text of a pair is its cosine similarity to "a fact"."""

    model = "given/model"
    dimension = 2
    thresholds = TRANSFORMER
    is_loading = False

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.arccos([1.0 if text == "a fact" else float(text) for text in texts])
        vectors: NDArray[np.float32] = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
        return vectors

    async def embed_query(self, text: str, statistics: CorpusStatistics | None = None) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = (await self.embed([text]))[0]
        return vector

    async def compute_statistics(self, texts: Sequence[str]) -> None:
        return None


def pairs(language: str, **similarities: Sequence[float]) -> list[LabelledPair]:
    return [
        LabelledPair.model_validate(
            {"a": "a fact", "b": str(similarity), "label": label, "language": language}
        )
        for label, some in similarities.items()
        for similarity in some
    ]


def test_half_of_the_labelled_pairs_are_russian_and_each_is_unique() -> None:
    labelled = read_pairs(PAIRS)
    assert len(labelled) >= 600
    languages = Counter(pair.language for pair in labelled)
    assert languages["en"] == languages["ru"] == len(labelled) / 2
    for language in languages:
        labels = Counter(pair.label for pair in labelled if pair.language == language)
        assert min(labels[label] for label in ("same", "update", "different")) >= 20
    assert len({frozenset((pair.a, pair.b)) for pair in labelled}) == len(labelled)
    assert all(
        pair.language == ("ru" if any("а" <= sign <= "я" for sign in pair.a.lower()) else "en")
        for pair in labelled
    )


async def test_precision_and_recall_separate_similar_pairs_from_different_pairs() -> None:
    measured = await calibrate_embedder(
        Given(), pairs("en", same=[0.955, 0.905], update=[0.805, 0.505], different=[0.705, 0.305])
    )
    curve = {point["threshold"]: point for point in measured["languages"]["en"]["curve"]}
    assert curve[0.4] == {"threshold": 0.4, "precision": 0.8, "recall": 1.0, "f1": 0.889}
    assert curve[0.75] == {"threshold": 0.75, "precision": 1.0, "recall": 0.75, "f1": 0.857}
    assert measured["languages"]["en"]["best_f1"] == curve[0.31]
    assert measured["languages"]["en"]["precise"] == curve[0.71]
    assert measured["recommended"] == {"update": 0.71, "duplicate": 0.81}


async def test_the_strictest_language_decides() -> None:
    english = pairs("en", same=[0.9], different=[0.5])
    russian = pairs("ru", same=[0.9], different=[0.7])
    measured = await calibrate_embedder(Given(), [*english, *russian])
    assert measured["languages"]["en"]["precise"]["threshold"] == 0.5
    assert measured["recommended"] == {"update": 0.7, "duplicate": 0.7}


async def test_no_threshold_is_recommended_if_none_is_precise_in_a_language() -> None:
    english = pairs("en", same=[0.9], different=[0.5])
    measured = await calibrate_embedder(Given(), [*english, *pairs("ru", same=[0.6], different=[0.905])])
    assert measured["languages"]["ru"]["precise"] is None
    assert measured["recommended"] is None


async def test_duplicate_threshold_exceeds_all_pairs_if_none_is_precise() -> None:
    measured = await calibrate_embedder(Given(), pairs("en", same=[0.6], update=[0.905], different=[0.5]))
    assert measured["recommended"] == {"update": 0.5, "duplicate": 0.91}


async def test_pairs_that_no_threshold_separates_have_no_points() -> None:
    measured = await calibrate_embedder(Given(), pairs("en", same=[0.2], different=[0.1]))
    assert measured["languages"]["en"] == {"pairs": 2, "best_f1": None, "precise": None, "curve": []}
    assert measured["recommended"] is None


def test_file_whose_pairs_alignment_decides_is_refused(tmp_path: Path) -> None:
    decided = LabelledPair(a="Likes tea", b="Likes tea", label="same", language="ru")
    file = tmp_path / "pairs.jsonl"
    file.write_text(
        "".join(
            f"{pair.model_dump_json()}\n"
            for pair in (*pairs("en", same=[0.9], different=[0.5]), decided, *pairs("ru", different=[0.5]))
        )
    )
    result = CliRunner().invoke(app, ["calibrate", str(file), "--provider", "wordllama"])
    assert result.exit_code == 2
    assert "the rules of `dedupe` decide, ru lacks pairs labelled `same` or `update`" in result.stderr


@pytest.mark.long
async def test_the_thresholds_of_wordllama_are_precise_for_what_alignment_leaves_open() -> None:
    measured = await calibrate_embedder(load_wordllama(), read_pairs(PAIRS))
    english, russian = (measured["languages"][language]["precise"] for language in ("en", "ru"))
    assert load_wordllama().thresholds.choose_update_threshold(is_english=True) >= english["threshold"]
    assert english["precision"] >= PRECISION
    assert (russian, load_wordllama().thresholds.choose_update_threshold(is_english=False)) == (None, 1.01)


def test_held_out_pairs_are_not_among_the_labelled_pairs() -> None:
    apart, labelled = (
        {(pair.a, pair.b) for pair in read_pairs(path)}
        for path in (PAIRS.with_name("pairs_apart.jsonl"), PAIRS)
    )
    assert len(apart) >= 200
    assert not apart & labelled


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "has no pairs"),
        ('{"a": "x", "b": "y", "label": "same", "language": "en"}', "en lacks pairs labelled `different`"),
        ('\n{"a": "x"}', ":2: b: Field required"),
        ('{"a": "x", "b": " ", "label": "same", "language": "en"}', ":1: b: "),
        ('{"a": "x", "b": "y", "label": "alike", "language": "en"}', ":1: label: "),
        ("not json", ":1: line: "),
    ],
)
def test_invalid_file_of_pairs_is_refused_with_its_line(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(content)
    with pytest.raises(InvalidPairs, match=problem):
        read_pairs(file)


def test_calibrate_command_shows_thresholds_and_names_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MNEMON_NATS_URL", raising=False)
    some = tmp_path / "some.jsonl"
    some.write_text("".join(PAIRS.read_text().splitlines(keepends=True)[::10]))
    shown = CliRunner().invoke(app, ["calibrate", str(some)])
    assert shown.exit_code == 0, shown.output
    assert "No threshold separates the pairs in: ru." in shown.output
    english = tmp_path / "english.jsonl"
    english.write_text(
        "".join(line for line in some.read_text().splitlines(True) if json.loads(line)["language"] == "en")
    )
    shown = CliRunner().invoke(app, ["calibrate", str(english)])
    assert "Thresholds that reach the precision in every language" in shown.output
    assert "dedupe.update_threshold=" in shown.output
    found = CliRunner().invoke(app, ["calibrate", str(some), "--provider", "wordllama", "--json"])
    assert json.loads(found.stdout)["model"] == load_wordllama().model
    assert CliRunner().invoke(app, ["calibrate", str(tmp_path / "none.jsonl")]).exit_code == 2
    unknown = CliRunner().invoke(app, ["calibrate", str(some), "--provider", "wordllama", "--model", "other"])
    assert unknown.exit_code == 3
    assert "wordllama has no model other" in unknown.output
