"""Process of the gateway: `python -m mnemon.gateway DESCRIPTOR`, started by `mnemon.gateway.launcher`.

DESCRIPTOR is the number of the file descriptor of a listening socket, which the process inherits.
"""

import asyncio
import json
import signal
import socket
import sys

from mnemon.gateway.application import create_application
from mnemon.http.server import serve_http
from mnemon_infra.broker.connection import connect_deployment, end_process_when_closed
from mnemon_infra.config import Deployment
from mnemon_infra.process.cancellation import patch_wait_for
from mnemon_infra.process.child_process import open_parent_pipe
from mnemon_infra.settings.api_keys import open_api_keys
from mnemon_infra.telemetry.logging import configure_logging


async def _serve_socket(descriptor: int) -> None:
    """Serve the gateway until the parent closes standard input or is killed, or SIGTERM arrives."""
    parent = await open_parent_pipe()
    deployment = Deployment.from_json(json.loads(await parent.readline()))
    async with await connect_deployment(deployment, name="mnemon-gateway") as connection:
        keys = await open_api_keys(connection)
        application = create_application(connection, keys, deployment)
        with end_process_when_closed(connection):
            async with serve_http(application, socket.socket(fileno=descriptor)):
                end = asyncio.create_task(parent.read())
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.cancel)
                await asyncio.wait([end])


if __name__ == "__main__":
    configure_logging()
    patch_wait_for()
    asyncio.run(_serve_socket(int(sys.argv[1])))
