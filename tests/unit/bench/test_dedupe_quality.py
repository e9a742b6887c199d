"""Decisions on labelled pairs: the table, the shares and the command."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon_bench.quality.calibration import LabelledPair
from mnemon_bench.quality.dedupe_quality import OUTCOMES, run
from tests.support.facts.preset_embedder import PresetEmbedder

SAME = LabelledPair(
    a="Anna is allergic to penicillin", b="Anna has a penicillin allergy", label="same", language="en"
)
UPDATE = LabelledPair(a="Lives in Leeds", b="Lives in Lisbon", label="update", language="en")
DIFFERENT = LabelledPair(
    a="Is allergic to penicillin",
    b="The user's mother is allergic to penicillin",
    label="different",
    language="en",
)
UNDECIDED = LabelledPair(a="User likes green tea", b="They are fond of sencha", label="same", language="en")
QUESTION = LabelledPair(a="Keeps two goats", b="Why do goats climb?", label="different", language="en")
OVERWRITTEN = LabelledPair(a="Lives in Leeds", b="Lives in Lisbon", label="different", language="en")

RUSSIAN = (
    LabelledPair(
        a="У Ивана аллергия на арахис", b="У Ивана — аллергия на арахис!", label="same", language="ru"
    ),
    LabelledPair(a="Живёт в Твери", b="Живёт в Казани", label="update", language="ru"),
    LabelledPair(a="Мама живёт в Твери", b="Папа живёт в Твери", label="different", language="ru"),
)


def row(**counts: int) -> dict[str, int]:
    return {outcome: counts.get(outcome, 0) for outcome in OUTCOMES}


def write_pairs(path: Path, pairs: Sequence[LabelledPair]) -> str:
    path.write_text("\n".join(pair.model_dump_json() for pair in pairs))
    return str(path)


async def test_each_pair_is_counted_once_by_language_label_and_outcome() -> None:
    pairs = (SAME, UPDATE, DIFFERENT, UNDECIDED, QUESTION, *RUSSIAN)
    measured = await run(pairs, PresetEmbedder())
    assert measured["languages"] == {
        "en": {
            "same": row(same=1, undecided=1),
            "update": row(update=1),
            "different": row(different=1, refused=1),
        },
        "ru": {"same": row(same=1), "update": row(update=1), "different": row(different=1)},
    }
    counts = [
        count
        for table in measured["languages"].values()
        for each in table.values()
        for count in each.values()
    ]
    assert sum(counts) == len(pairs)
    assert measured["faults"] == []


async def test_shares_are_of_the_pairs_of_their_language_and_label() -> None:
    measured = await run((SAME, UNDECIDED, UPDATE, DIFFERENT, OVERWRITTEN, *RUSSIAN), PresetEmbedder())
    assert measured["ratios"] == {
        "different_merged_en": 0.5,
        "paraphrases_recognised_en": 0.5,
        "updates_recognised_en": 1.0,
        "undecided_answered_en": 1.0,
        "different_merged_ru": 0.0,
        "paraphrases_recognised_ru": 1.0,
        "updates_recognised_ru": 1.0,
    }
    (fault,) = measured["faults"]
    assert (fault["a"], fault["b"]) == (OVERWRITTEN.a, OVERWRITTEN.b)
    assert fault["evidence"]


async def test_each_figure_has_a_target_and_a_language_without_targets_has_low_ones() -> None:
    german = (SAME.model_copy(update={"language": "de"}), DIFFERENT.model_copy(update={"language": "de"}))
    measured = await run((UNDECIDED, UPDATE, DIFFERENT, *RUSSIAN, *german), PresetEmbedder())
    at_least, at_most = measured["targets"]["at_least"], measured["targets"]["at_most"]
    assert at_most == {f"different_merged_{language}": 0.02 for language in ("de", "en", "ru")}
    assert {name: bound for name, bound in at_least.items() if name.startswith("para")} == {
        "paraphrases_recognised_de": 0.0,
        "paraphrases_recognised_en": 0.45,
        "paraphrases_recognised_ru": 0.25,
    }
    assert (at_least["updates_recognised_en"], at_least["undecided_answered_en"]) == (0.6, 0.9)
    assert at_least.keys() | at_most.keys() == measured["ratios"].keys()
    assert "updates_recognised_de" not in measured["ratios"], "no pair of that language is an update"


def test_the_command_shows_the_table_and_ends_with_0_when_each_target_is_reached(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.jsonl", (SAME, UPDATE, DIFFERENT))
    outcome = CliRunner().invoke(app, ["bench", "dedupe-quality", "--data", path])
    assert outcome.exit_code == 0, outcome.output
    lines = [line.split() for line in outcome.stdout.splitlines()]
    assert ["language", "labelled", *OUTCOMES] in lines
    assert ["en", "update", "0", "1", "0", "0", "0"] in lines
    assert "missed" not in outcome.stdout


def test_the_command_ends_with_1_when_a_target_is_missed(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.jsonl", (SAME, UPDATE, OVERWRITTEN))
    outcome = CliRunner().invoke(app, ["bench", "dedupe-quality", "--data", path, "--json"])
    assert outcome.exit_code == 1
    measured = json.loads(outcome.stdout)
    assert measured["ratios"]["different_merged_en"] == 1.0
    assert measured["languages"]["en"]["different"] == row(update=1)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "has no pairs"),
        (SAME.model_dump_json(), "en lacks pairs labelled `different`"),
        ('{"a": "x", "b": "y", "label": "alike", "language": "en"}', ":1: label: "),
    ],
)
def test_the_command_ends_with_2_for_a_file_without_labelled_pairs(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(content)
    outcome = CliRunner().invoke(app, ["bench", "dedupe-quality", "--data", str(path)])
    assert outcome.exit_code == 2
    assert problem in outcome.output
    assert "Traceback" not in outcome.output
