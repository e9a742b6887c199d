"""Report and files of an import, for any source."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from mnemon.cli.app import app
from mnemon.cli.imports.progress import ImportFiles, ImportOptions
from mnemon.operations.imports.jsonl import JsonLinesReader
from mnemon.operations.imports.markdown import MarkdownReader


def looked_at(tmp_path: Path, text: str) -> tuple[int, Path]:
    """Import JSON lines as a dry run; return the exit code and the path of the file for refused records."""
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


def test_file_to_import_is_not_overwritten_by_refused_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, link = tmp_path / "refused.jsonl", tmp_path / "link.jsonl"
    source.write_text("{}\n")
    link.symlink_to(source)
    files = ImportFiles([source], JsonLinesReader().read)
    for refused in source, link:
        with pytest.raises(typer.Exit) as ended:
            ImportOptions(dry_run=True, refused=refused).run_import(files.read_records(), None, files)
        assert ended.value.exit_code == 2
        assert f"--refused {refused} is one of the files to import" in capsys.readouterr().err
    assert source.read_text() == "{}\n"


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


CHAT = {
    "name": "Helper",
    "type": "personal_chat",
    "id": 777,
    "messages": [
        {
            "id": number,
            "type": "message",
            "date": "2026-03-01T10:00:00",
            "from": name,
            "from_id": f"user{sender}",
            "text": "Hi",
        }
        for number, (sender, name) in enumerate(((777, "Helper"), (42, "Anna")))
    ],
}


def try_telegram(tmp_path: Path, *options: str) -> Result:
    export = tmp_path / "result.json"
    export.write_text(json.dumps(CHAT))
    return CliRunner().invoke(
        app, ["import", "telegram", str(export), "--tenant", "acme", "--dry-run", *options]
    )


@pytest.mark.parametrize(
    ("options", "user"), [((), "42"), (("--bot", "Anna"), "777"), (("--user", "u1"), "u1")]
)
def test_report_names_the_user_whose_memory_is_filled(
    tmp_path: Path, options: tuple[str, ...], user: str
) -> None:
    done = try_telegram(tmp_path, *options)
    assert (done.exit_code, f"Events of user {user}.\n" in done.stdout) == (0, True)


def test_unknown_bot_is_refused_with_the_senders(tmp_path: Path) -> None:
    refused = try_telegram(tmp_path, "--bot", "Helpr")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.splitlines() == [
        "mnemon: no message is from 'Helpr', so nothing was imported",
        "  Give one of the senders as --bot: 'Helper' (user777), 'Anna' (user42)",
    ]


def test_standard_input_cannot_be_rewritten() -> None:
    whose = ("--tenant", "acme", "--user", "u1")
    refused = CliRunner().invoke(app, ["import", "markdown", "-", "--rewrite", *whose], input="- A fact\n")
    assert (refused.exit_code, "standard input cannot be rewritten" in refused.stderr) == (2, True)
