"""The labelled sentences of the bench for secrets, and its precision and recall."""

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon_bench.quality.secrets import LIST, InvalidSentences, LabelledSentence, read_sentences, run

SECRET = LabelledSentence(text="My password is hunter2", label="secret", language="en")
HARMLESS = LabelledSentence(text="Changes the password every month", label="harmless", language="en")


def test_half_of_the_sentences_are_russian_half_are_harmless_and_each_is_unique() -> None:
    sentences = read_sentences(LIST)
    assert len(sentences) >= 150
    for field in ("language", "label"):
        counts = Counter(getattr(sentence, field) for sentence in sentences)
        assert len(counts) == 2
        assert max(counts.values()) == min(counts.values())
    assert len({sentence.text for sentence in sentences}) == len(sentences)


def test_recall_and_precision_reach_their_targets_in_each_language() -> None:
    measured = run(read_sentences(LIST))
    assert set(measured["ratios"]) == {"recall_en", "precision_en", "recall_ru", "precision_ru"}
    assert min(measured["ratios"].values()) >= 0.95


def test_misses_are_counted_and_named() -> None:
    mislabelled = [
        SECRET,
        HARMLESS,
        HARMLESS.model_copy(update={"label": "secret"}),
        SECRET.model_copy(update={"label": "harmless"}),
    ]
    measured = run(mislabelled)
    assert measured["ratios"] == {"recall_en": 0.5, "precision_en": 0.5}
    assert measured["missed"] == [HARMLESS.text]
    assert measured["refused"] == {SECRET.text: "a password"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "has no sentences"),
        ('{"text": "a", "label": "perhaps", "language": "en"}', ":1: label:"),
        (SECRET.model_dump_json(), "en lacks sentences labelled `harmless`"),
    ],
)
def test_file_without_labelled_sentences_is_refused(tmp_path: Path, lines: str, said: str) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(lines)
    with pytest.raises(InvalidSentences, match=said):
        read_sentences(path)
    outcome = CliRunner().invoke(app, ["bench", "secrets", "--data", str(path)])
    assert outcome.exit_code == 2


def test_the_command_ends_with_1_when_a_target_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    missed = HARMLESS.model_copy(update={"label": "secret"})
    path.write_text("\n".join(each.model_dump_json() for each in (SECRET, HARMLESS, missed)))
    outcome = CliRunner().invoke(app, ["bench", "secrets", "--data", str(path), "--json"])
    assert outcome.exit_code == 1
    assert json.loads(outcome.stdout)["missed"] == [HARMLESS.text]


def test_the_command_measures_the_list_that_comes_with_mnemon() -> None:
    assert CliRunner().invoke(app, ["bench", "secrets"]).exit_code == 0
