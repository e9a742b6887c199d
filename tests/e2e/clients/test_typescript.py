"""The package tests of the TypeScript client, run in Node with `mnemon up`."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_contracts.export import ROOT
from mnemon_contracts.subjects import build_inbox_prefix, encode_token
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.embedded.logins import FolderLogins
from mnemon_infra.embedded.nats_server import NatsServer
from tests.contracts.test_documentation import IDS
from tests.support.processes.programs import install_packages, require_node, run_program
from tests.support.processes.stack import TIMEOUT, Up

PACKAGE = ROOT / "producers" / "typescript"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def package() -> Path:
    """Return the folder of the package, built and with its dependencies installed."""
    require_node()
    lock, installed = PACKAGE / "package-lock.json", PACKAGE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        await install_packages(PACKAGE, "ci")
    built = await run_program("npm", "run", "build", folder=PACKAGE)
    assert built.code == 0, built.out + built.err
    return PACKAGE


@pytest_asyncio.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[str]:
    """Start a server with logins; yield its address with the login of tenant A."""
    with FolderLogins(tmp_path).edit() as users:
        login = users.issue_tenant_login("A")
    server = NatsServer(tmp_path, None)
    await server.start()
    operator = await connect(server.build_login_url("operator"), name="operator")
    await provision(operator)
    await operator.close()
    yield login.add_to_url(server.url)
    await server.stop()


def test_version_is_that_of_python() -> None:
    assert json.loads((PACKAGE / "package.json").read_text())["version"] == version("mnemon")


@pytest.mark.long
async def test_ids_are_spelled_as_in_python(package: Path) -> None:
    script = (
        'import { encodeToken, inboxPrefix } from "./dist/subjects.js";'
        f"console.log(JSON.stringify({json.dumps(IDS)}.map((id) => [encodeToken(id), inboxPrefix(id)])))"
    )
    done = await run_program("node", "--input-type=module", "--eval", script, folder=package)
    assert done.code == 0, done.err
    assert json.loads(done.out) == [[encode_token(each), build_inbox_prefix(each)] for each in IDS]


@pytest.mark.long
async def test_types_are_up_to_date(package: Path) -> None:
    done = await run_program("node", "generate.mjs", "--check", folder=package)
    assert done.code == 0, done.out + done.err


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_tests_of_the_package_pass(package: Path, shared: Up, guarded: str) -> None:
    assert shared.endpoints
    assert shared.endpoints.gateway
    tenant = f"typescript-{uuid4().hex[:8]}"
    issued = await shared.issue_key(tenant)
    with ProviderServer() as model:
        done = await run_program(
            "npm",
            "test",
            folder=package,
            MNEMON_NATS_URL=shared.endpoints.nats,
            MNEMON_GATEWAY_URL=shared.endpoints.gateway,
            MNEMON_KEY=issued.text,
            MNEMON_TENANT=tenant,
            MNEMON_MODEL_URL=model.openai_url,
            MNEMON_GUARDED_NATS_URL=guarded,
        )
    assert done.code == 0, done.out + done.err
    assert "skipped 0" in done.out


@pytest.mark.long
async def test_events_of_a_broker_that_is_killed_are_stored_once(package: Path, stack: Up) -> None:
    assert stack.endpoints
    assert stack.endpoints.gateway
    environment = {
        **os.environ,
        "MNEMON_NATS_URL": stack.endpoints.nats,
        "MNEMON_GATEWAY_URL": stack.endpoints.gateway,
        "MNEMON_KEY": (stack.data / "gateway" / "key").read_text().strip(),
        "MNEMON_TENANT": "default",
    }
    bots = [
        await asyncio.create_subprocess_exec(
            *("node", "test/steady-bot.mjs", transport),
            cwd=package,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for transport in ("nats", "http")
    ]
    try:
        for bot in bots:
            assert bot.stdout
            assert await bot.stdout.readline() == b"under way\n"
        stack.servers()["nats-server"].kill()  # `mnemon up` starts it again
        for bot in bots:
            async with asyncio.timeout(TIMEOUT):
                out, _ = await bot.communicate(b"")  # closes the bot's input
            found = json.loads(out)
            assert found == {"published": found["published"], "stored": found["published"], "isOrdered": True}
            assert found["published"] > 20
    finally:
        for bot in bots:
            if bot.returncode is None:
                bot.kill()
                await bot.wait()
