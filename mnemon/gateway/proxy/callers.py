"""Callers of the proxy: the keys in their requests, and the keys accepted while no check is possible."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from typing import Final, NamedTuple

from cachetools import TTLCache
from fastapi import Request
from fastapi.security import HTTPAuthorizationCredentials
from nats.errors import Error as BrokerError

from mnemon.gateway.callers import Caller, Callers
from mnemon.gateway.problems import Problem

ACCEPTED_SECONDS: Final = 300.0
"""Seconds for which a key is accepted after its last successful check, if it cannot be checked again."""

_KEY_HEADER: Final = "mnemon-key"


class ClientKeys(NamedTuple):
    """Keys in the headers of a request to the proxy.

    Attributes:
        key: the key of mnemon; None if the request has none.
        has_own_key: whether mnemon's key has its own header; the client then sends the provider's key itself.
    """

    key: str | None
    has_own_key: bool


class ProxyCallers:
    """Callers of the proxy in this process. The check of a key takes at most `timeout_seconds`."""

    def __init__(self, callers: Callers, timeout_seconds: float) -> None:
        self._callers = callers
        self._timeout_seconds = timeout_seconds
        self._accepted: TTLCache[str, Caller] = TTLCache(10_000, ACCEPTED_SECONDS)

    async def identify_caller(self, request: Request, keys: ClientKeys) -> Caller | None:
        """Return the caller; None if the key is in the header `Mnemon-Key` and cannot be checked now.

        The proxy forwards a request without a caller to the provider, without memory. While a key cannot be
        checked, the caller of its last successful check is returned for up to `ACCEPTED_SECONDS` seconds.

        Raises:
            Problem: the key is missing or wrong, lacks a scope or cannot be checked, or the address of the
                client has to wait after several wrong keys.
        """
        try:
            caller = await self._check_key(request, keys.key)
        except Problem as problem:
            if problem.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                self._accepted.pop(keys.key or "", None)
            elif keys.key and (known := self._accepted.get(keys.key)):
                return known
            elif keys.has_own_key:
                return None
            raise
        if keys.key:
            self._accepted[keys.key] = caller
        return caller

    async def _check_key(self, request: Request, key: str | None) -> Caller:
        """Return the caller of a key.

        Raises:
            Problem: the key is missing or wrong, lacks a scope or cannot be checked (status 503), or the
                address of the client has to wait after several wrong keys.
        """
        credentials = HTTPAuthorizationCredentials(scheme="Bearer", credentials=key) if key else None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                caller = await self._callers.identify(
                    request.client.host if request.client else "", credentials
                )
        except (BrokerError, TimeoutError) as error:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "unavailable",
                "the NATS server does not answer, so the key cannot be checked; repeat the request later",
                retryable=True,
            ) from error
        caller.require_scopes("read", "write")
        return caller

    @contextmanager
    def open_request(self, caller: Caller | None) -> Iterator[ExitStack]:
        """Count a request of the caller's tenant as open.

        Yields:
            An `ExitStack`: when it closes, the request no longer counts as open; `pop_all` defers this
            beyond the block.

        Raises:
            Problem: the process or the tenant has too many open requests.
        """
        tenant = caller.tenant if caller else None
        with ExitStack() as ends:
            self._callers.open_request(tenant)
            ends.callback(self._callers.close_request, tenant)
            yield ends


def find_keys(request: Request) -> ClientKeys:
    """Return the keys of a request.

    The key of mnemon is in the header `Mnemon-Key`, or in the header of the provider's key: `x-api-key` or
    `Authorization`.
    """
    if own := request.headers.get(_KEY_HEADER):
        return ClientKeys(own, has_own_key=True)
    scheme, _, sent = request.headers.get("authorization", "").partition(" ")
    key = request.headers.get("x-api-key") or (sent.strip() if scheme.lower() == "bearer" else None)
    return ClientKeys(key or None, has_own_key=False)
