"""A former version of mnemon, from the history of the repository, run with the installed dependencies."""

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.support.processes.runner import Runner
from tests.support.processes.stack import CommandResult, mnemon

REPOSITORY: Final = Path(__file__).parents[3]

COMMITS: Final = {
    "0.1.0": "73505bd5870e504b9dc3f7d19549805752c78756",
    "0.2.0": "d4bd8d18af9ec0628ae61855ff0ada8da2598357",
}
"""The last commit of each version."""

_PACKAGES: Final = ("bench", "consumers", "contracts", "infra", "migrations", "producers")
"""Folders that hold packages since 0.2.0. In 0.1.0 they are packages themselves."""


class HistoryMissing(Exception):
    """The repository lacks the commit, for example in a shallow clone, or git is not installed."""


class FormerVersion:
    """Processes of a former version.

    Args:
        version: a version of `COMMITS`, such as `0.1.0`.
        folder: folder to create for the sources.

    Raises:
        HistoryMissing: git cannot read the sources of the version.
    """

    def __init__(self, version: str, folder: Path) -> None:
        command = ("git", "-C", str(REPOSITORY), "archive", COMMITS[version])
        try:
            archive = subprocess.run(command, capture_output=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise HistoryMissing(f"the sources of {version} are not in this clone") from error
        folder.mkdir()
        with tarfile.open(fileobj=io.BytesIO(archive)) as members:
            members.extractall(folder, filter="data")
        self.version = version
        self._folder = folder

    def run_consumers(self, names: Sequence[str], output: Path, environment: Mapping[str, str]) -> Runner:
        """Return a process of this version that runs consumers, not started yet."""
        return Runner(names, output, **environment, **self.environment)

    async def run(self, *arguments: str, **environment: str) -> CommandResult:
        """Run `mnemon` of this version to its end."""
        return await mnemon(*arguments, **environment, **self.environment)

    @property
    def head_revision(self) -> str:
        """The newest revision of the schema that this version knows."""
        return max(file.name[:4] for file in self._folder.glob("migrations/**/versions/*_*.py"))

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with which `python -m mnemon` runs this version."""
        folders = [self._folder, *(self._folder / name for name in _PACKAGES)]
        # Without PYTHONSAFEPATH, Python imports the `mnemon` of the working directory.
        return {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONSAFEPATH": "1"}
