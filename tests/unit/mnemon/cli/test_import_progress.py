"""Report and files of an import, for any source."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon.cli.imports.progress import ImportFiles, ImportOptions
from mnemon.operations.imports.jsonl import JsonLinesReader
from mnemon.operations.imports.markdown import MarkdownReader


def looked_at(tmp_path: Path, text: str) -> tuple[int, Path]:
    """The exit code of a look at lines, and the file of what is refused."""
    source, refused = tmp_path / "lines.jsonl", tmp_path / "refused.jsonl"
    source.write_text(text)
    files = ImportFiles([source], JsonLinesReader().read)
    with pytest.raises(typer.Exit) as ended:
        ImportOptions(dry_run=True, refused=refused).run_import(files.read_records(), None, files)
    return ended.value.exit_code, refused


def test_refused_partial_character_is_written_unchanged(tmp_path: Path) -> None:
    body = {"role": "user", "content": "hi", "id": " m "}
    line = {"tenant": "acme", "user": "u1", "event": "message.v1", "note": "\ud83d", "body": body}
    code, refused = looked_at(tmp_path, json.dumps(line))
    assert (code, json.loads(refused.read_text())["record"]) == (1, line)


def test_refused_records_are_shown_with_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looked_at(tmp_path, "{")
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "1 refused, for example"
    assert shown[2].startswith("  line 1: line: must be JSON: ")
    assert shown[3].startswith("Correct these and import again")


def test_source_without_events_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = looked_at(tmp_path, "")
    assert (code, capsys.readouterr().out) == (0, "0 events found.\nNothing was sent.\n")


def test_dry_run_names_the_policy_that_judged_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "u1.md"
    source.write_text("- Her sister is called Vera.\n- What is it?\n")
    files = ImportFiles([source], MarkdownReader("acme", None).read)
    with pytest.raises(typer.Exit):
        ImportOptions(dry_run=True).run_import(files.read_records(), "acme", files)
    said = "2 proposed facts were judged by the default policy; an import uses the policy of the tenant."
    assert said in capsys.readouterr().out


def test_standard_input_cannot_be_rewritten() -> None:
    whose = ("--tenant", "acme", "--user", "u1")
    refused = CliRunner().invoke(app, ["import", "markdown", "-", "--rewrite", *whose], input="- A fact\n")
    assert (refused.exit_code, "standard input cannot be rewritten" in refused.stderr) == (2, True)
