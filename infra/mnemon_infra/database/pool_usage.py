"""Usage of the connection pools of this process."""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from psycopg_pool import AsyncConnectionPool


class PoolState(NamedTuple):
    """State of a pool: its connections, how many of them are idle, and how many requests wait for one."""

    name: str
    connections: int
    idle: int
    waiting: int


opened: WeakKeyDictionary[AsyncConnectionPool[Any], str] = WeakKeyDictionary()
"""Open pools, each with the name that its connections have in the database."""


def pools() -> list[PoolState]:
    """Return the state of each open pool."""
    return [_state(pool, name) for pool, name in opened.items()]


def _state(pool: AsyncConnectionPool[Any], name: str) -> PoolState:
    stats = pool.get_stats()
    return PoolState(
        name, *(stats.get(each, 0) for each in ("pool_size", "pool_available", "requests_waiting"))
    )
