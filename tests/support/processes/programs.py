"""Functions that run other programs than mnemon to their end, such as npm."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Literal

import pytest

from tests.support.processes.stack import CommandResult

_SECONDS = 240


async def run_program(
    *command: str | Path, folder: Path, told: str = "", **environment: str
) -> CommandResult:
    """Run a program with `told` as its standard input, and return its exit code and output.

    It has the variables of this process and those of `environment`.

    Raises:
        TimeoutError: the program ran for more than `_SECONDS`, and was killed.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            out, err = await process.communicate(told.encode())
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    return CommandResult(process.returncode or 0, out.decode(), err.decode())


def require_node() -> None:
    """Skip the test if `node` or `npm` is not installed; the README requires only Python for tests."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node is not installed: `node` and `npm` are needed")


async def install_packages(folder: Path, how: Literal["install", "ci"] = "install") -> None:
    """Install the packages of a folder with npm; skip the test if npm fails, for example without a registry.

    For tests, the README requires no network except the index of Python packages.
    """
    # By default npm waits five minutes for an answer of the package index before it retries.
    options = "--no-audit", "--no-fund", "--loglevel=error", "--fetch-timeout=20000", "--fetch-retries=5"
    done = await run_program("npm", how, *options, folder=folder)
    if done.code:
        pytest.skip(f"npm cannot install the packages of {folder.name} here: {done.err.strip()[-200:]}")
