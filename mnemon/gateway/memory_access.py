"""Access of the routes to the broker: requests and publishing for any tenant, over one connection."""

from functools import lru_cache

from fastapi import Request
from nats.aio.client import Client

from mnemon_producers.client import MemoryClient
from mnemon_producers.publisher import Publisher
from mnemon_producers.requests import Questioner
from mnemon_producers.timeouts import DEFAULTS

_TENANTS = 4096


class MemoryAccess:
    """A `Publisher`, a `Questioner` and a `MemoryClient` for each tenant, over one connection.

    The caller closes the connection.
    """

    def __init__(self, connection: Client) -> None:
        self.connection = connection
        self.get_publisher = lru_cache(_TENANTS)(lambda tenant: Publisher(connection, tenant, DEFAULTS))
        """Return the publisher of a tenant."""
        self.get_questioner = lru_cache(_TENANTS)(lambda tenant: Questioner(connection, tenant, DEFAULTS))
        """Return the questioner of a tenant."""
        self.get_client = lru_cache(_TENANTS)(lambda tenant: MemoryClient(connection, tenant=tenant))
        """Return the client of a tenant."""


async def get_memory(request: Request) -> MemoryAccess:
    """Return the access to memory that all requests of the application share.

    This function is a coroutine, because the framework runs other functions in threads.
    """
    memory: MemoryAccess = request.app.state.memory
    return memory
