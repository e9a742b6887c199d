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
    """A folder for a stack, which PostgreSQL's own account can reach; whatever runs on it is ended."""
    with stack_folder() as data:
        yield data


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Makes a disk of so many megabytes, once."""
    with making_disk() as make:
        yield make


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared() -> AsyncIterator[Up]:
    """A running `mnemon up` for all who only talk to it, each as a tenant of its own."""
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
    """A folder with a database that is made and migrated: to make it is a third of a first start."""
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
    """`mnemon up`, not started yet, and nothing is in its folder, as there is nothing in that of `shared`."""
    up = Up(data)
    yield up
    with suppress(AssertionError, ProcessLookupError):
        await up.stop()


@pytest.fixture
def up(fresh_up: Up, initialised: Path) -> Up:
    """`mnemon up`, not started yet."""
    # `cp`: the database's files stay those of its account.
    subprocess.run(["cp", "-a", initialised, fresh_up.data], check=True)
    return fresh_up


@pytest_asyncio.fixture
async def stack(up: Up) -> Up:
    """`mnemon up`, and all of it answers."""
    await up.start()
    return up
