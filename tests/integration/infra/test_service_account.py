"""Creation of the system account of PostgreSQL. Each test has its own copy of `/etc`."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROCESSES = 5

CREATE = """
import sys
from mnemon_infra.embedded.account import find_service_account
print("ready", flush=True)
sys.stdin.read()
print(find_service_account())
"""
"""Program that finds or creates the account when its standard input ends."""

RUN = """
mount --bind "$1" /etc
shift
exec "$@"
"""


@pytest.fixture
def accounts(tmp_path: Path) -> Path:
    """Return a copy of `/etc` without the account, for a mount namespace."""
    if os.geteuid() != 0:
        pytest.skip("accounts are created by root only")
    if not shutil.which("useradd") or not shutil.which("unshare"):
        pytest.skip("useradd and unshare are needed")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces are not permitted")
    copy = tmp_path / "etc"
    copy.mkdir()
    for name in "passwd", "group", "shadow", "gshadow", "login.defs", "nsswitch.conf":
        source = Path("/etc") / name
        if source.exists():
            lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
            (copy / name).write_text("".join(each for each in lines if not each.startswith("pgserver:")))
    return copy


@pytest.mark.long
async def test_processes_that_start_at_once_get_the_same_account(accounts: Path) -> None:
    command = ["unshare", "--mount", "bash", "-c", RUN, "bash", str(accounts), sys.executable, "-c", CREATE]
    processes = [
        await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    outputs = await asyncio.gather(*(process.communicate(b"") for process in processes))
    (account,) = {output.decode().strip() for output, _ in outputs}
    (entry,) = [
        line for line in (accounts / "passwd").read_text().splitlines() if line.startswith("pgserver:")
    ]
    user, group = entry.split(":")[2:4]
    assert account == f"Account(user={user}, group={group})"
