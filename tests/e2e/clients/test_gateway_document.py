"""The gateway answers generated requests as its OpenAPI document describes (schemathesis)."""

import asyncio
import os
import re
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.clients.test_gateway import connect
from tests.support.processes.stack import Up

ROOT = Path(__file__).parents[3]
OPTIONS = ROOT / "tests" / "support" / "schemathesis.toml"
IS_THOROUGH = "GATEWAY_CASES" in os.environ
CASES = int(os.environ.get("GATEWAY_CASES", "5"))
"""Generated requests for each operation, in addition to those that test the bounds of each field."""

SEED = os.environ.get("GATEWAY_SEED", "1")

pytestmark = [pytest.mark.long, pytest.mark.timeout(0 if IS_THOROUGH else 600)]


@pytest.mark.parametrize(
    "scopes",
    [
        pytest.param(("read", "write", "erase"), id="with all permissions"),
        pytest.param(("read",), id="read only"),
        pytest.param((), id="without a key"),
    ],
)
async def test_answers_are_as_the_document_says(shared: Up, tmp_path: Path, scopes: tuple[str, ...]) -> None:
    assert shared.endpoints
    async with connect(shared) as client:  # the first request starts the process of the gateway
        await client.get("/readyz")
    headers = []
    # A key without permission is refused before the bounds are checked, so one run over the bounds is enough.
    phases = "examples,coverage,fuzzing" if IS_THOROUGH or "write" in scopes else "examples,fuzzing"
    if scopes:
        issued = await shared.issue_key(f"drawn-{uuid4().hex[:8]}", scopes)
        headers = ["--header", f"Authorization: Bearer {issued.text}"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(OPTIONS), "run", *headers),
        *("--phases", phases, "--max-examples", str(CASES), "--seed", SEED),
        *("--generation-database", "none", "--continue-on-failure"),
        f"{shared.endpoints.gateway}/openapi.json",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out = (await process.communicate())[0].decode()
    assert process.returncode == 0, out
    drawn = re.search(r"(\d+) generated", out)
    assert drawn
    assert int(drawn[1]) > (1000 if "coverage" in phases else 100)
