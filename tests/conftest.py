"""Servers for the tests: a nats-server per test, and a PostgreSQL per worker with a schema per test."""

import fcntl
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from nats.aio.client import Client
from xdist import get_xdist_worker_id
from xdist.scheduler import LoadFileScheduling

from mnemon_consumers.app import run_consumers
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.config import Deployment
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.embedded.postgres import Postgres
from mnemon_infra.process.cancellation import patch_wait_for
from tests.support.hypothesis_profiles import load_profiles
from tests.support.servers.qdrant import drop_reserved, list_reserved
from tests.support.servers.schemas import create_schema
from tests.support.stock_client import Stock

MEMORY_DISK = Path("/dev/shm")
LEAST_FREE = 4 * 2**30
WORKER_GROUPS = {
    "tests/e2e/clients/test_typescript.py": "commands",
    "tests/e2e/cli/": "commands",
    "tests/e2e/clients/": "stack",
    "tests/e2e/stack/test_installed_wheel.py": "wheel",
    "tests/e2e/stack/": "stack",
    "tests/integration/infra/models/": "models",
}
"""Groups of tests that one worker runs, by the first prefix of this table that a test's id begins with.

The tests of a group share a stack of `mnemon up`, a library that takes long to import, or a build that two
workers would write at once.
"""

OWN_WORKERS = (
    "tests/e2e/chaos/test_extract_kills.py",
    "tests/e2e/clients/test_gateway_document.py",
    "tests/e2e/stack/test_backup.py",
    "tests/e2e/stack/test_demo.py",
    "tests/e2e/stack/test_full_disk.py",
    "tests/e2e/stack/test_lifecycle.py",
    "tests/e2e/stack/test_liveness.py",
    "tests/e2e/stack/test_logins.py",
    "tests/e2e/stack/test_rolling_upgrade.py",
)
"""Files with long tests that share at most the stack of their group: each test is scheduled on its own."""


def _use_memory_disk() -> None:
    """Use a folder in memory for the servers' files if it has room: a flush to disk takes milliseconds."""
    if (
        "TMPDIR" not in os.environ
        and MEMORY_DISK.is_dir()
        and shutil.disk_usage(MEMORY_DISK).free > LEAST_FREE
    ):
        # Processes that tests start read the variable.
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY_DISK)


class _Scheduling(LoadFileScheduling):
    """Groups of `WORKER_GROUPS` have a worker each, and other integration tests go to workers one by one.

    Without long tests, the groups `commands` and `stack` share a worker, because each start of `mnemon up`
    takes seconds of a processor. Tests of other files share servers or are quick.

    Workers with an odd number take integration tests first. These mostly wait, and the tests of `tests/e2e`,
    which the other workers take first, mostly compute.
    """

    def _assign_work_unit(self, node: Any) -> None:
        if int(node.gateway.id.removeprefix("gw")) % 2:
            waiting = (scope for scope in self.workqueue if scope.startswith("tests/integration/"))
            if scope := next(waiting, None):
                self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        # A worker gets one test in advance, not two: a test behind a long one starts late.
        if self._pending_of(self.assigned_work[node]) < 2 or not self.workqueue:
            super()._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        is_quick = self.config.getoption("markexpr") == "not long"
        if nodeid.startswith(OWN_WORKERS) and not is_quick:
            return nodeid
        for beginning, scope in WORKER_GROUPS.items():
            if nodeid.startswith(beginning):
                return "stack" if is_quick and scope == "commands" else scope
        return nodeid if nodeid.startswith("tests/integration/") else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Scheduling | None:
    return _Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


@contextmanager
def _wait_for_turn(session: pytest.Session) -> Iterator[None]:
    """Let as many workers collect at once as there are processors.

    With empty caches, collection compiles 5,000 modules. Workers that collect later find their bytecode. A
    run without workers, or without pytest's cache, does not wait.
    """
    worker = get_xdist_worker_id(session)
    if worker == "master" or not session.config.pluginmanager.has_plugin("cacheprovider"):
        yield
        return
    turn = int(worker.removeprefix("gw")) % (os.cpu_count() or 1)
    with (session.config.cache.mkdir("collection") / f"{turn}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without garbage collections, which take half of the time: everything imported stays.

    Afterwards, full collections are ten times rarer: at the usual threshold they took a twelfth of the time
    of the unit tests.
    """
    gc.disable()
    try:
        with _wait_for_turn(session):
            return (yield)
    finally:
        gc.freeze()
        newest, younger, older = gc.get_threshold()
        gc.set_threshold(newest, younger, 10 * older)
        gc.enable()


load_profiles()
_use_memory_disk()


@pytest.fixture(scope="session", autouse=True)
def _no_configuration_from_outside() -> None:
    """Remove variables of the developer's shell, which could make tests use other servers."""
    for name in list(os.environ):
        if name.startswith(("MNEMON_", "OTEL_", "PG_")) or name == "DATABASE_URL":
            del os.environ[name]


@pytest.fixture(scope="session", autouse=True)
def _processes_find_what_an_installation_has() -> None:
    absent = str(Path(__file__).with_name("support") / "absent")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (absent, os.environ.get("PYTHONPATH"))))


@pytest.fixture(scope="session", autouse=True)
def _one_thread_for_go() -> None:
    """Run each nats-server on one processor: without idle threads it takes a quarter less time."""
    os.environ["GOMAXPROCS"] = "1"


@pytest.fixture(scope="session", autouse=True)
def _as_every_process_begins() -> None:
    patch_wait_for()


class _Quick(Postgres):
    """A PostgreSQL without flushes and vacuum: no test tests a power failure or keeps many rows."""

    @property
    def command(self) -> tuple[str, ...]:
        return *super().command, "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "autovacuum=off"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def database_url() -> AsyncIterator[str]:
    """Start a PostgreSQL for this worker, and yield its address."""
    # Not `tmp_path`: each start of pytest makes its parent folders inaccessible to PostgreSQL's own account.
    with tempfile.TemporaryDirectory(prefix="mnemon-test-") as folder:
        server = _Quick(Path(folder), None)
        await server.start()
        yield server.url
        await server.stop()


class _Fleeting(NatsServer):
    """A server that is killed at the end, which saves an eighth of a second: its folder is not read again."""

    ending = ((signal.SIGKILL, 5.0),)


@pytest.fixture(autouse=True)
def _no_collections_left() -> Iterator[None]:
    """Delete the collections of the test's own deployments from the Qdrant server, if there is one."""
    before = list_reserved()
    yield
    drop_reserved(list_reserved() - before)


@pytest_asyncio.fixture
async def nats_url(tmp_path: Path) -> AsyncIterator[str]:
    """Start a nats-server without streams for the test, and yield its URL."""
    server = _Fleeting(tmp_path, None)
    await server.start()
    yield server.url
    await server.stop()


@pytest_asyncio.fixture
async def connection(nats_url: str) -> AsyncIterator[Client]:
    """Yield a connection to the test's nats-server, with all streams and consumers provisioned."""
    connection = await connect(nats_url, name="test")
    await provision(connection)
    yield connection
    await connection.close()


@pytest.fixture
def deployment(connection: Client, nats_url: str, database_url: str) -> Deployment:
    """Return a deployment for the test, with streams and a migrated schema."""
    deployment = Deployment(
        nats_url=nats_url, database_dsn=database_url, database_schema=f"test_{uuid4().hex[:12]}"
    )
    create_schema(deployment.database_url, deployment.database_schema)
    return deployment


@pytest_asyncio.fixture
async def stock(connection: Client) -> Stock:
    return Stock(connection)


@pytest_asyncio.fixture
async def mnemon(deployment: Deployment) -> AsyncIterator[Deployment]:
    """Run the consumers `persist` and `retrieve` in this process."""
    async with run_consumers(("persist", "retrieve"), deployment):
        yield deployment
