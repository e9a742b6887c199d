"""Report and files of an import, for any source."""

import json
from pathlib import Path

import pytest
import typer

from mnemon.cli.imports.progress import ImportFiles, ImportOptions
from mnemon.operations.imports.jsonl import JsonLinesReader


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


def test_source_without_events_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = looked_at(tmp_path, "")
    assert (code, capsys.readouterr().out) == (0, "0 events found.\nNothing was sent.\n")
