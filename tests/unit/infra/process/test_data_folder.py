"""The version of mnemon that last wrote a data folder."""

from importlib.metadata import version
from pathlib import Path

import pytest

from mnemon_infra.process.data_folder import FOLDER_FORMAT, FolderTooNew, FolderVersion, mark_folder

PRESENT = FolderVersion(format=FOLDER_FORMAT, mnemon=version("mnemon"))


@pytest.mark.parametrize("text", [None, "", '{"form', '{"format": 1, "mnemon": "0.0.1", "more": true}'])
def test_mark_records_this_version(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "version.json").write_text(text)
    mark_folder(tmp_path)
    assert FolderVersion.read(tmp_path) == PRESENT
    assert [file.name for file in tmp_path.iterdir()] == ["version.json"]


def test_mark_refuses_folder_of_newer_version(tmp_path: Path) -> None:
    newer = '{"format": 2, "mnemon": "9.9.9"}'
    (tmp_path / "version.json").write_text(newer)
    with pytest.raises(FolderTooNew, match=r"newer mnemon \(9\.9\.9, in format 2, .*Upgrade mnemon"):
        mark_folder(tmp_path)
    assert (tmp_path / "version.json").read_text() == newer
