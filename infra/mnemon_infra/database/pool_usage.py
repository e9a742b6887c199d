"""How the pools of connections of this process fare."""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from psycopg_pool import AsyncConnectionPool


class PoolState(NamedTuple):
    """How many connections a pool has, how many of them nobody uses, and who waits for one."""

    name: str
    connections: int
    idle: int
    waiting: int


opened: WeakKeyDictionary[AsyncConnectionPool[Any], str] = WeakKeyDictionary()
"""Those that are open, with what their connections are called in the database."""


def pools() -> list[PoolState]:
    """Those that are open."""
    return [_state(pool, name) for pool, name in opened.items()]


def _state(pool: AsyncConnectionPool[Any], name: str) -> PoolState:
    stats = pool.get_stats()
    return PoolState(
        name, *(stats.get(each, 0) for each in ("pool_size", "pool_available", "requests_waiting"))
    )
