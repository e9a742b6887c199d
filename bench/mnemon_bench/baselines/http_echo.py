"""HTTP server with one route that echoes the body: the reference of `bench gateway`.

It runs FastAPI and uvicorn in a separate process, and does no other work.
"""

import asyncio
import socket
import sys

import uvicorn
from fastapi import FastAPI, Request, Response

PATH = "/echo"


def create_application() -> FastAPI:
    """Return an application with one route, which answers with the body of the request."""
    application = FastAPI()

    @application.post(PATH)
    async def echo(request: Request) -> Response:
        return Response(await request.body(), media_type="application/json")

    return application


async def serve_socket(descriptor: int) -> None:
    """Serve the listening socket of the file descriptor `descriptor` until killed.

    The settings for lifespan, logs and headers are those of the gateway.
    """
    config = uvicorn.Config(
        create_application(),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
    await uvicorn.Server(config).serve([socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    asyncio.run(serve_socket(int(sys.argv[1])))
