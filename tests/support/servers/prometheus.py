"""Prometheus for a test, with the configuration of the repository."""

import asyncio
import json
import math
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from tests.support.processes.stack import TIMEOUT
from tests.support.servers.ports import free_port

MONITORING = Path(__file__).parents[3] / "infra" / "monitoring"


class Prometheus:
    """Client of a running Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    async def is_ready(self) -> bool:
        try:
            await asyncio.to_thread(urlopen, f"{self._url}/-/ready")
        except (HTTPError, URLError):
            return False
        return True

    async def has_data(self, query: str) -> bool:
        """Return whether the result of a query has a number."""
        found = await self._ask("query", query=query)
        return any(not math.isnan(float(series["value"][1])) for series in found["result"])

    async def rules(self) -> dict[str, dict[str, Any]]:
        """Return the rules as JSON objects, by name."""
        groups = (await self._ask("rules"))["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    async def _ask(self, what: str, **parameters: str) -> dict[str, Any]:
        url = f"{self._url}/api/v1/{what}?{urlencode(parameters)}"
        with await asyncio.to_thread(urlopen, url) as response:
            answer = json.load(response)
        assert answer["status"] == "success", answer
        data: dict[str, Any] = answer["data"]
        return data


@asynccontextmanager
async def prometheus(folder: Path, targets: Sequence[str]) -> AsyncIterator[Prometheus]:
    """Run Prometheus for the duration of the block; it scrapes `targets` every second.

    `targets` are addresses such as `127.0.0.1:9090`; files are written to `folder`.
    """
    program, port = shutil.which("prometheus"), free_port()
    assert program
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(MONITORING / each) for each in config["rule_files"]]
    (job,) = config["scrape_configs"]
    job["static_configs"] = [{"targets": list(targets)}]
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    with (folder / "prometheus.log").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            program,
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
            stdout=output,
            stderr=output,
        )
    try:
        running = Prometheus(port)
        async with asyncio.timeout(TIMEOUT):
            while not await running.is_ready():
                assert process.returncode is None, (folder / "prometheus.log").read_text()
                await asyncio.sleep(0.1)
        yield running
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
