"""Cluster of three nats-servers with three copies of each stream, and kills of the leader of the log."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import nats.errors
from nats.aio.client import Client
from nats.js.api import ClusterInfo

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import BUCKETS, STREAMS
from mnemon_infra.durables import DURABLES
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.process.data_folder import replace_file
from tests.support.processes.stack import TIMEOUT
from tests.support.servers.ports import free_port

SERVERS = 3

_CLUSTER = """\
cluster {{
  name: mnemon
  listen: "127.0.0.1:{port}"
  routes: [{routes}]
}}
"""


class Member(NatsServer):
    """One server of a cluster, with its own folder.

    Args:
        data: the folder, whose name becomes the name of the server.
        port: port for clients.
        route: port for the other servers.
        routes: the ports `route` of all servers.
    """

    def __init__(self, data: Path, port: int, route: int, routes: Sequence[int]) -> None:
        super().__init__(data, port)
        self.member = data.name
        self.folder = data
        self._route = route
        self._routes = routes

    async def prepare(self) -> None:
        await super().prepare()
        configuration = Path(self.mark)
        routes = ", ".join(f'"nats-route://127.0.0.1:{port}"' for port in self._routes)
        alone = configuration.read_text().replace("server_name: mnemon", f"server_name: {self.member}")
        replace_file(configuration, alone + _CLUSTER.format(port=self._route, routes=routes))

    async def killed(self) -> None:
        """Kill the server with SIGKILL, and wait until it has ended."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()


class Cluster:
    """A running cluster.

    Attributes:
        url: addresses of all servers, comma-separated.
        folders: folders of the servers.
        killed: names of the killed servers, in order.
    """

    def __init__(self, members: Sequence[Member], connection: Client) -> None:
        self._members = {member.member: member for member in members}
        self._stream_context = connection.jetstream(timeout=0.5)
        self.url = ",".join(member.url for member in members)
        self.folders = [member.folder for member in members]
        self.killed: list[str] = []

    async def leader_killed(self) -> None:
        """Kill the server that leads the log with SIGKILL, start it again, and wait for all copies."""
        leader = (await self._log()).leader
        assert leader is not None
        await self._members[leader].killed()
        await self._until_led(without=leader)
        await self._members[leader].start()
        await self.is_whole()
        self.killed.append(leader)

    async def is_whole(self) -> None:
        """Wait until every stream has a leader, and every server a current copy of each stream."""
        async with asyncio.timeout(TIMEOUT):
            while not await self._has_all_copies():
                await asyncio.sleep(0.1)

    async def copies(self) -> dict[str, int]:
        """Return the number of servers that store each stream and each durable, by name."""
        found: dict[str, ClusterInfo | None] = {}
        for name in (*(str(config.name) for config in STREAMS), *(f"KV_{each.bucket}" for each in BUCKETS)):
            found[name] = (await self._stream_context.stream_info(name)).cluster
        for durable in DURABLES.values():
            info = await self._stream_context.consumer_info(durable.stream, durable.name)
            found[durable.name] = info.cluster
        return {name: 1 + len((at and at.replicas) or ()) for name, at in found.items()}

    async def _until_led(self, without: str) -> None:
        async with asyncio.timeout(TIMEOUT):
            while True:
                try:
                    if (await self._log()).leader not in (None, without):
                        return
                except nats.errors.Error:
                    pass
                await asyncio.sleep(0.05)

    async def _has_all_copies(self) -> bool:
        try:
            for config in STREAMS:
                cluster = (await self._stream_context.stream_info(str(config.name))).cluster
                copies = (cluster and cluster.replicas) or []
                if len(copies) != SERVERS - 1 or not all(copy.current for copy in copies):
                    return False
        except nats.errors.Error:
            return False
        return True

    async def _log(self) -> ClusterInfo:
        cluster = (await self._stream_context.stream_info(LOG)).cluster
        assert cluster is not None, "the server runs alone"
        return cluster


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Run a cluster of three servers, without streams, for the duration of the block."""
    first = free_port(2 * SERVERS - 1)
    ports, routes = range(first, first + SERVERS), range(first + SERVERS, first + 2 * SERVERS)
    members = [
        Member(folder / f"n{number}", ports[number], routes[number], routes) for number in range(SERVERS)
    ]
    for member in members:
        (folder / member.member).mkdir(parents=True)
    try:
        await asyncio.gather(*(member.start() for member in members))
        connection = await connect(",".join(member.url for member in members), name="test-cluster")
        try:
            await _can_keep_streams(connection)
            yield Cluster(members, connection)
        finally:
            await connection.close()
    finally:
        await asyncio.gather(*(member.stop() for member in members))


async def _can_keep_streams(connection: Client) -> None:
    """Wait until the servers have elected the leader that creates streams."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            try:
                await connection.jetstream(timeout=1).account_info()
                return
            except nats.errors.Error:
                await asyncio.sleep(0.1)
