"""Qdrant server for one test, from the program that `MNEMON_QDRANT_BINARY` names."""

import asyncio
import json
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import SecretStr

from mnemon_infra.config import Deployment
from mnemon_infra.vectors.port import VectorsUnavailable
from tests.support.processes.stack import TIMEOUT
from tests.support.servers.certificate import create_certificate
from tests.support.servers.ports import free_port

BINARY: Final = os.environ.get("MNEMON_QDRANT_BINARY") or None
"""Path of the program. It is read on import, because a fixture removes the variable from the tests'
environment.
"""

requires_binary: Final = pytest.mark.skipif(
    BINARY is None, reason="MNEMON_QDRANT_BINARY names no Qdrant server to start"
)


class QdrantProcess:
    """A server on free ports, with its storage in `folder`, a new folder; both stay the same after a kill."""

    def __init__(self, folder: Path, *, api_key: str | None = None, is_encrypted: bool = False) -> None:
        folder.mkdir()
        self.storage = folder / "storage"
        self._folder = folder
        self._process: Process | None = None
        port = free_port(1)
        service: dict[str, Any] = {"host": "127.0.0.1", "http_port": port, "grpc_port": port + 1}
        configuration: dict[str, Any] = {
            "storage": {"storage_path": str(self.storage), "snapshots_path": str(folder / "snapshots")},
            "service": service,
            "telemetry_disabled": True,
            "log_level": "WARN",
        }
        self._values: dict[str, Any] = {
            "qdrant_url": f"http://127.0.0.1:{port}",
            "qdrant_grpc_port": port + 1,
            "qdrant_api_key": SecretStr(api_key) if api_key else None,
        }
        if api_key:
            service["api_key"] = api_key
        if is_encrypted:
            certificate, key = create_certificate(folder)
            service["enable_tls"] = True
            configuration["tls"] = {"cert": str(certificate), "key": str(key)}
            self._values |= {"qdrant_url": f"https://127.0.0.1:{port}", "qdrant_ca": certificate}
        # Each JSON document is also valid YAML.
        (folder / "config.yaml").write_text(json.dumps(configuration))

    def locate(self, deployment: Deployment) -> Deployment:
        """Return the deployment with its vectors on this server."""
        return deployment.model_copy(update=self._values)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with which processes of mnemon reach the server."""
        values = {name: each for name, each in self._values.items() if each is not None}
        return {
            f"MNEMON_{name.upper()}": each.get_secret_value() if isinstance(each, SecretStr) else str(each)
            for name, each in values.items()
        }

    async def start(self) -> None:
        """Start the server, and wait until it answers."""
        await self.begin()
        try:
            await self.answers()
        except BaseException:
            await self.kill()
            raise

    async def begin(self) -> None:
        """Start the process of the server, without waiting for an answer."""
        assert BINARY
        self._process = await asyncio.create_subprocess_exec(
            *(BINARY, "--config-path", "config.yaml", "--disable-telemetry"),
            cwd=self._folder,
            stdout=DEVNULL,
            stderr=DEVNULL,
        )

    async def answers(self) -> None:
        """Wait until the server answers; fail if its process ends."""
        from mnemon_infra.vectors.server import read_version

        async with asyncio.timeout(TIMEOUT):
            while True:
                assert self._process
                assert self._process.returncode is None, "the Qdrant server ended"
                try:
                    await read_version(self.locate(Deployment()))
                    return
                except VectorsUnavailable:
                    await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """Kill the server with SIGKILL, and wait until it has ended."""
        assert self._process
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def restart(self) -> None:
        """Kill the server with SIGKILL, and start it again on the same storage."""
        await self.kill()
        await self.start()

    def stop_answering(self) -> None:
        """Suspend the process with SIGSTOP: connections stay open, but requests get no answer."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def answer_again(self) -> None:
        """Resume the process with SIGCONT."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)
