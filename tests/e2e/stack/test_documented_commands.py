"""README and quick start: each block runs in order, or is listed here with the reason why it does not run."""

import os
import re
import shutil
import stat
import sys
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.processes.programs import run_program
from tests.support.processes.stack import Up
from tests.support.repository.code_blocks import Block, blocks
from tests.support.repository.command_lines import invocations, parse
from tests.support.servers.qdrant import stack_environment

ROOT = Path(__file__).parents[3]
README, QUICK_START = PAGES = (ROOT / "README.md", ROOT / "docs" / "quick-start.md")

NOT_RUN = {
    "pip install uv && uv run mnemon demo": "test_demo.py runs it, and holds README to it",
    "pip install uv && uv run pytest": "this is it",
    "uv run mnemon up --data ./memory --nats-port 4222": "a stack runs already; it is the same command",
    "docker compose up --build --scale persist=2 --scale dedupe=2": "no engine; see test_compose.py",
}

UV = '#!/bin/sh\n[ "$1" = run ] && [ "$2" = mnemon ] && shift 2 && exec "{python}" -m mnemon "$@"\nexit 64\n'

NATS = '''#!{python}
"""`nats pub SUBJECT BODY` and `nats req SUBJECT BODY`, as far as the pages have them."""
import asyncio, sys, nats

async def main(how, subject, body):
    async with await nats.connect("{url}") as connection:
        if how == "pub":
            await connection.publish(subject, body.encode())
        else:
            reply = await connection.request(subject, body.encode(), timeout=60)
            print(reply.data.decode())
            sys.exit("error" in __import__("json").loads(reply.data))

asyncio.run(main(*sys.argv[1:]))
'''


def documented() -> list[Block]:
    return [block for page in PAGES for block in blocks(page)]


def run_blocks() -> list[Block]:
    """Return the commands to run, in the order of the pages."""
    return [
        block
        for block in documented()
        if block.language in ("sh", "python") and block.text.strip() not in NOT_RUN
    ]


def shown_after(block: Block) -> str | None:
    """Return the output that the page shows after a block."""
    for one, other in pairwise(blocks(block.page)):
        if (one, other.language) == (block, "text"):
            return other.text
    return None


def without_times(text: str) -> list[str]:
    return [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", line) for line in text.splitlines()]


@pytest.fixture
def programs(shared: Up, tmp_path: Path) -> Path:
    """Return a folder with the commands `uv`, for this environment, and `nats`, for the shared stack."""
    assert shared.endpoints
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("uv", UV), ("nats", NATS)):
        program = folder / name
        program.write_text(text.replace("{python}", sys.executable).replace("{url}", shared.endpoints.nats))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(README, id="README.md"),
        pytest.param(QUICK_START, id="quick-start.md"),
    ],
)
async def test_every_block_runs_with_the_documented_output(
    shared: Up, programs: Path, tmp_path: Path, page: Path
) -> None:
    assert shared.endpoints
    assert shared.endpoints.gateway
    found = [block for block in run_blocks() if block.page == page]
    if shutil.which("curl") is None:
        found = [block for block in found if "curl " not in block.text]
    assert found
    user = f"u{uuid4().hex[:8]}"
    environment = {**stack_environment(shared.data), "PATH": f"{programs}:{os.environ['PATH']}"}
    for block in found:
        text = block.text.replace("nats://127.0.0.1:4222", shared.endpoints.nats)
        text = text.replace("http://127.0.0.1:8080", shared.endpoints.gateway).replace(
            "curl -sS", "curl -sSf"
        )
        # The stack is shared: other tests and pages also use `u42`.
        text = text.replace("./memory", str(shared.data)).replace("u42", user)
        command = ("sh", "-ec", text) if block.language == "sh" else (sys.executable, "-c", text)
        done = await run_program(*command, folder=tmp_path, **environment)
        assert done.code == 0, f"{block}: {done.out}{done.err}"
        if (expected := shown_after(block)) is not None:
            lines = without_times(expected)
            assert without_times(done.out)[: len(lines)] == lines, block


def test_skipped_blocks_exist_and_parse() -> None:
    texts = {block.text.strip() for block in documented() if block.language == "sh"}
    assert NOT_RUN.keys() <= texts
    for text in NOT_RUN:
        for arguments in invocations(text.replace("uv run ", "")):
            parse(arguments)


def test_every_block_has_a_known_kind() -> None:
    # The TypeScript programs run in `producers/typescript/test/docs.test.mjs`.
    assert {block.language for block in documented()} == {"sh", "python", "text", "ts"}
    assert not [page for page in PAGES if re.search(r"^(    |\t)\S", strip(page.read_text()), re.MULTILINE)]


def strip(markdown: str) -> str:
    """Return the page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
