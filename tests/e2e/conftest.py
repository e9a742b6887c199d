"""Stacks of `mnemon up`: shared, initialised, or new."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from mnemon_infra.config import Deployment
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.embedded.postgres import Postgres
from tests.support.processes.command_server import serving_commands
from tests.support.processes.stack import Up, stack_folder
from tests.support.servers.disk import Disk, making_disk


@pytest.fixture(scope="session", autouse=True)
def _commands_are_forked() -> Iterator[None]:
    with serving_commands():
        yield


@pytest.fixture
def data() -> Iterator[Path]:
    """Yield a stack's folder that PostgreSQL's account can open; end the processes on it afterwards."""
    with stack_folder() as data:
        yield data


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Yield a function that mounts a disk of the given number of megabytes; it can be called once."""
    with making_disk() as make:
        yield make


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared() -> AsyncIterator[Up]:
    """Start the `mnemon up` that tests share; each test uses a tenant of its own."""
    with stack_folder() as data:
        up = Up(data)
        try:
            await up.start()
            yield up
        finally:
            with suppress(ProcessLookupError):
                await up.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def initialised() -> AsyncIterator[Path]:
    """Yield a folder with a migrated database, which saves a third of the time of a first start."""
    with stack_folder() as data:
        data.mkdir(mode=0o700)
        server = Postgres(data, None)
        await server.start()
        deployment = Deployment(database_dsn=server.url)
        assert deployment.database_url
        migrate_schema(deployment.database_url, deployment.database_schema)
        await server.stop()
        yield data


@pytest_asyncio.fixture
async def fresh_up(data: Path) -> AsyncIterator[Up]:
    """Yield a `mnemon up` that is not started, with an empty folder."""
    up = Up(data)
    yield up
    with suppress(AssertionError, ProcessLookupError):
        await up.stop()


@pytest.fixture
def up(fresh_up: Up, initialised: Path) -> Up:
    """Return a `mnemon up` that is not started, whose folder has a migrated database."""
    # `cp -a` keeps the owner of the database's files.
    subprocess.run(["cp", "-a", initialised, fresh_up.data], check=True)
    return fresh_up


@pytest_asyncio.fixture
async def stack(up: Up) -> Up:
    """Start `mnemon up`, and wait until it answers."""
    await up.start()
    return up
