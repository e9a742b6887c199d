"""Committed files match the contracts, and an export cannot break a released version."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from mnemon_contracts import export
from mnemon_contracts.export import (
    ROOT,
    SCHEMAS,
    find_differences,
    find_refusals,
    generate_files,
    write_files,
)
from mnemon_contracts.publication import published
from mnemon_contracts.publication.compatibility import find_breaking_changes
from mnemon_contracts.publication.published import CONTRACTS

MESSAGE = SCHEMAS / "message.v1.json"


@pytest.fixture(scope="module")
def files() -> Mapping[Path, str]:
    """Text of each generated file. As a constant, every worker that imports the module would compute it."""
    return generate_files(published.load_examples())


def test_committed_schemas_are_up_to_date(files: Mapping[Path, str]) -> None:
    assert find_refusals(ROOT, files) == []
    assert find_differences(ROOT, files) == []


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_contract_has_a_schema_that_did_not_break(name: str) -> None:
    released = json.loads((published.SCHEMAS / f"{name}.json").read_bytes())
    Draft202012Validator.check_schema(released)
    assert released["$id"] == f"urn:mnemon:{name}"
    assert released["title"] == CONTRACTS[name].__name__
    assert find_breaking_changes(released, published.generate_schema(name)) == []


def test_every_schema_has_a_contract() -> None:
    assert {path.name for path in published.SCHEMAS.iterdir()} == {f"{name}.json" for name in CONTRACTS}


@pytest.mark.long
def test_the_output_is_the_same_in_every_process() -> None:
    script = (
        "import hashlib; from mnemon_contracts import export;"
        "from mnemon_contracts.publication import published;"
        "files = sorted(export.generate_files(published.load_examples()).items());"
        "print(hashlib.sha256(repr(files).encode()).hexdigest())"
    )
    digests = {
        subprocess.check_output([sys.executable, "-c", script], cwd=ROOT, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_fresh_tree_is_written_whole_and_then_nothing_differs(
    tmp_path: Path, files: Mapping[Path, str]
) -> None:
    assert len(find_differences(tmp_path, files)) == len(files)
    write_files(tmp_path, files)
    assert find_differences(tmp_path, files) == []
    assert find_refusals(tmp_path, files) == []


def test_a_difference_names_the_file_and_the_line(tmp_path: Path, files: Mapping[Path, str]) -> None:
    write_files(tmp_path, files)
    page = tmp_path / "docs/contracts.md"
    page.write_text(
        page.read_text(encoding="utf-8").replace("# Contracts", "# Agreements", 1), encoding="utf-8"
    )
    [difference] = find_differences(tmp_path, files)
    assert "docs/contracts.md" in difference
    assert "-# Agreements\n+# Contracts" in difference


def test_a_breaking_change_is_refused(tmp_path: Path, files: Mapping[Path, str]) -> None:
    write_files(tmp_path, files)
    released = json.loads(files[MESSAGE])
    released["properties"]["mood"] = {"type": "string"}
    (tmp_path / MESSAGE).write_text(json.dumps(released), encoding="utf-8")
    [refusal] = find_refusals(tmp_path, files)
    assert refusal.startswith("contracts/schemas/message.v1.json: mood: removed; add a new version")


def test_a_new_optional_field_is_not_refused(tmp_path: Path, files: Mapping[Path, str]) -> None:
    write_files(tmp_path, files)
    released = json.loads(files[MESSAGE])
    del released["properties"]["metadata"]
    released["description"] = "As it was described before."
    (tmp_path / MESSAGE).write_text(json.dumps(released), encoding="utf-8")
    assert find_refusals(tmp_path, files) == []


def test_a_released_schema_whose_contract_is_gone_is_refused(
    tmp_path: Path, files: Mapping[Path, str]
) -> None:
    write_files(tmp_path, files)
    (tmp_path / SCHEMAS / "song.sung.v1.json").write_text("{}", encoding="utf-8")
    [refusal] = find_refusals(tmp_path, files)
    assert refusal.startswith("contracts/schemas/song.sung.v1.json: no contract generates")


@pytest.mark.long
def test_command_writes_only_accepted_schemas(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: Mapping[Path, str],
) -> None:
    monkeypatch.setattr(export, "ROOT", tmp_path)
    assert export.main(["--check"]) == 1
    assert "python -m mnemon_contracts.export" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

    assert export.main([]) == 0
    assert export.main(["--check"]) == 0
    assert "up to date" in capsys.readouterr().out

    narrower = files[MESSAGE].replace('"tool"', '"robot"')
    (tmp_path / MESSAGE).write_text(narrower, encoding="utf-8")
    assert export.main([]) == 1
    assert 'role: "robot" is no longer accepted; add a new version instead' in capsys.readouterr().err
    assert (tmp_path / MESSAGE).read_text(encoding="utf-8") == narrower


def test_a_missing_example_for_the_page_is_named() -> None:
    bodies = {name: {} if name == "message.v1" else each for name, each in published.load_examples().items()}
    with pytest.raises(FileNotFoundError, match=r"message/v1/typical\.json is missing"):
        generate_files(bodies)


def test_export_without_an_example_names_it_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(export, "ROOT", tmp_path)
    monkeypatch.setattr(published, "load_examples", dict)
    assert export.main([]) == 1
    assert "/typical.json is missing: add the example" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
