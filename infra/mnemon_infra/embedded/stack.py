"""Stack of servers that run in one folder: those that the deployment does not configure.

A start also migrates the schema and provisions the streams. Servers that end are started again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
)

from mnemon_infra.broker.connection import MAX_PAYLOAD, connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.embedded.disk_space import require_room, watch_disk
from mnemon_infra.embedded.nats_server import RESTORE_MAX_PAYLOAD, NatsServer
from mnemon_infra.embedded.postgres import Postgres
from mnemon_infra.embedded.process import ServerFailed, ServerProcess
from mnemon_infra.health.consistency import require_same_log
from mnemon_infra.process.data_folder import Endpoints, FolderUnusable, lock_folder, mark_folder

log = structlog.get_logger("embedded")

_BACKOFF = wait_exponential(multiplier=0.1, max=5)

_NOTICED = 1.0
"""Maximum seconds between a client's error and the moment when this process notices that the server ended."""

Started = TypeVar("Started")

_RELEASE = 5.0
"""Minimum seconds for which a failed start is retried: a killed server's resources may not be free yet."""


class Stack:
    """A running stack: `deployment` has the addresses of all servers, `servers` are those that run in `data`.

    If the broker of the stack requires logins, `deployment` has the worker's login, and `endpoints` has none.
    """

    def __init__(
        self, data: Path, deployment: Deployment, servers: Sequence[ServerProcess], endpoints: Endpoints
    ) -> None:
        self.data = data
        self.deployment = deployment
        self.endpoints = endpoints
        self.servers = tuple(servers)
        self._announcing = False
        self._down: set[str] = set()
        self._ends = 0
        self._ended = asyncio.Condition()
        self._is_whole = asyncio.Event()
        self._is_whole.set()

    @contextmanager
    def announce_endpoints(self, http: str | None = None, gateway: str | None = None) -> Iterator[None]:
        """Keep `endpoints.json` in the folder within the block, except while a server of the stack is down.

        Commands find the stack by this file.

        `http` is the address of the admin page, `gateway` that of the HTTP gateway.
        """
        self.endpoints = self.endpoints.model_copy(update={"http": http, "gateway": gateway})
        self._announcing = True
        self._update_endpoints()
        try:
            yield
        finally:
            self._announcing = False
            self._update_endpoints()

    @asynccontextmanager
    async def keep_servers(self) -> AsyncIterator[None]:
        """Restart each server that ends, and watch the disk, until the end of the block."""
        keepers = [
            asyncio.create_task(self._keep_running(server), name=server.name) for server in self.servers
        ]
        broker = next((server for server in self.servers if server.part == "broker"), None)
        keepers.append(
            asyncio.create_task(watch_disk(self.data, broker, self._update_endpoints), name="disk")
        )
        try:
            yield
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)

    @asynccontextmanager
    async def enter_with_retries(
        self, start: Callable[[], AbstractAsyncContextManager[Started]]
    ) -> AsyncIterator[Started]:
        """Enter a context that needs the servers.

        If the entry fails because a server ended, enter the context again once all servers run.
        """
        while True:
            ends = self._ends
            async with AsyncExitStack() as entered:
                try:
                    started = await entered.enter_async_context(start())
                except Exception as error:
                    if not await self._has_ended_since(ends):
                        raise
                    log.warning("server ended during the start, retrying", error=str(error))
                    await self._is_whole.wait()
                    continue
                yield started
                return

    async def _has_ended_since(self, ends: int) -> bool:
        """Return whether the number of server ends exceeds `ends`, now or within `_NOTICED` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_NOTICED):
                async with self._ended:
                    await self._ended.wait_for(lambda: self._ends > ends)
        return self._ends > ends

    async def _keep_running(self, server: ServerProcess) -> None:
        while True:
            code = await server.wait_for_end()
            log.error("server exited, restarting", server=server.name, exit_code=code)
            self._down.add(server.name)
            self._is_whole.clear()
            async with self._ended:
                self._ends += 1
                self._ended.notify_all()
            self._update_endpoints()
            async for attempt in AsyncRetrying(wait=_BACKOFF, before_sleep=partial(_log_retry, server.name)):
                with attempt:
                    await server.start()
            log.warning("server recovered", server=server.name)
            self._down.discard(server.name)
            if not self._down:
                self._is_whole.set()
            self._update_endpoints()

    def _update_endpoints(self) -> None:
        try:
            if self._announcing and not self._down:
                self.endpoints.write(self.data)
            else:
                Endpoints.remove(self.data)
        except OSError as error:  # a full disk must not stop the restarting of servers
            log.error("endpoints.json update failed", error=error.strerror)


@asynccontextmanager
async def run_stack(
    data: Path,
    deployment: Deployment,
    *,
    nats_port: int | None = None,
    database_port: int | None = None,
    with_streams: bool = True,
) -> AsyncIterator[Stack]:
    """Run in a folder the servers that the deployment does not configure; update streams and schema.

    Args:
        data: the folder, created if absent; only one process at a time may lock it.
        deployment: the configuration; a server that it names is not started.
        nats_port: port of the broker on 127.0.0.1; None takes its former port, else a free port.
        database_port: port of the database on 127.0.0.1; None opens a unix socket only.
        with_streams: False for a restore: streams, durables and buckets are not created or changed, and a
            broker that runs in the folder accepts messages of up to `RESTORE_MAX_PAYLOAD` bytes.

    Raises:
        FolderInUse: another process has locked the folder.
        FolderTooNew: a newer version has written the folder.
        FolderUnusable: the folder cannot be created or written.
        ServerPortTaken: a chosen port cannot be opened.
        ServerFailed: a server does not start or is not installed, or the disk has too little room (`NoRoom`).
        LogKeyRefused: the deployment's key does not match the log in the folder.
        ForeignLoginFile: the file of logins in the folder was not written by `mnemon auth`.
        NoAccount: this process runs as root, and PostgreSQL's account is absent and cannot be created.
        BrokerUnreachable: the configured broker does not answer, is too old, or refuses the login.
        TooFewServers: the deployment has more `replicas` than the broker has servers.
        nats.errors.Error: the broker refuses a change of the streams, or stops answering.
        DatabaseUnavailable: the configured database does not answer, or its role lacks a right.
        SchemaTooNew: the schema belongs to a newer version.
        LogTooNew: a newer version has marked the log.
        LogLost: the database has an event beyond the end of the log.
        RestoreUnfinished: a restore into the log has not ended.
    """
    data = data.resolve()  # noqa: ASYNC240 (once, at the start)
    async with AsyncExitStack() as ends:
        try:
            ends.enter_context(lock_folder(data))
            Endpoints.remove(data)  # the endpoints of a killed run
            require_room(data)
            mark_folder(data)
        except OSError as error:
            raise FolderUnusable(data, error) from None
        broker = None
        if not deployment.nats_url:
            max_payload = MAX_PAYLOAD if with_streams else RESTORE_MAX_PAYLOAD
            broker = NatsServer(data, nats_port, _read_log_key(deployment), max_payload)
        database = None if deployment.database_url else Postgres(data, database_port)
        servers = tuple(server for server in (broker, database) if server)
        for server, port in (broker, nats_port), (database, database_port):
            if server:
                server.require_port(port)
        ends.push_async_callback(_stop_servers, servers)
        await _run_all(*(_start_server(server) for server in servers))
        started: dict[str, Any] = {"nats_url": broker.url} if broker else {}
        started |= {"database_dsn": database.url} if database else {}
        # With a Qdrant server, the folder tells which disk to watch.
        if deployment.qdrant_url or not deployment.vectors_folder:
            started |= {"vectors_folder": data / "vectors"}
        deployment = Deployment(**deployment.model_dump() | started)
        endpoints = Endpoints.from_deployment(deployment)
        if broker:
            deployment = deployment.model_copy(update={"nats_url": broker.build_login_url("worker")})
        stack = Stack(data, deployment, servers, endpoints)
        # In this order: if the schema belongs to a newer version, the streams do not change either.
        await _migrate_schema(deployment)
        if with_streams:
            await _provision_streams(
                broker.build_login_url("operator") if broker else str(deployment.nats_url), deployment
            )
        await ends.enter_async_context(stack.keep_servers())
        yield stack


def _read_log_key(deployment: Deployment) -> str | None:
    return deployment.log_key.get_secret_value() if deployment.log_key else None


async def _start_server(server: ServerProcess) -> None:
    # The backends of a killed server release their shared resources a moment after the signal to end, and
    # later on a busy machine.
    patience = stop_after_attempt(3) & stop_after_delay(_RELEASE)
    async for attempt in AsyncRetrying(
        wait=_BACKOFF,
        stop=patience,
        retry=retry_if_exception_type(ServerFailed),
        before_sleep=partial(_log_retry, server.name),
        reraise=True,
    ):
        with attempt:
            await server.start()


async def _stop_servers(servers: Sequence[ServerProcess]) -> None:
    await asyncio.gather(*(server.stop() for server in servers), return_exceptions=True)


async def _provision_streams(url: str, deployment: Deployment) -> None:
    async with (
        await connect(url, name="mnemon-up") as connection,
        Database(deployment, name="mnemon-up") as database,
    ):
        # Before `provision` creates an empty log in the place of a lost one.
        await require_same_log(connection, database)
        await provision(connection, deployment.replicas)


async def _migrate_schema(deployment: Deployment) -> None:
    assert deployment.database_url, "it was configured, or has been started"
    await asyncio.to_thread(migrate_schema, deployment.database_url, deployment.database_schema)


async def _run_all(*tasks: Coroutine[Any, Any, None]) -> None:
    """Run all tasks. The first failure cancels the other tasks and is raised unchanged."""
    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(task)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


def _log_retry(server: str, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning(
        "server start failed, retrying", server=server, attempt=state.attempt_number, error=str(error)
    )
