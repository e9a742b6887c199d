"""Callers of the gateway: their keys with the permissions, and the open requests of each tenant."""

from collections import Counter
from http import HTTPStatus
from math import ceil
from typing import Annotated, Final, NamedTuple

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.requests import HTTPConnection

from mnemon.gateway.problems import Problem
from mnemon.http.login_attempts import LoginAttempts
from mnemon_infra.settings.api_keys import ApiKey, ApiKeys, Scope, TooManyLookups

MAX_OPEN_REQUESTS: Final = 512
"""Maximum number of open requests with a valid key, or with a key that cannot be checked now, in a process;
further ones are refused with 503.
"""

MAX_OPEN_REQUESTS_OF_TENANT: Final = 64
"""Maximum number of open requests of a tenant in a process; further ones are refused with 429."""

CALLER: Final = "mnemon.caller"
"""Name of the entry for the caller in the ASGI scope of a request."""

BEARER: Final = HTTPBearer(
    auto_error=False, scheme_name="key", description="API key, which `mnemon auth key create` prints."
)


class Caller(NamedTuple):
    """The tenant of a request, and the permissions of its key.

    Attributes:
        user: the only user whose memory the key permits; None if it permits all users of the tenant.
        key: the key as the client sent it.
    """

    tenant: str
    scopes: tuple[Scope, ...]
    user: str | None
    key: str

    def require_scopes(self, *scopes: Scope) -> None:
        """Check that the key has all of `scopes`; the user of the key does not matter.

        Raises:
            Problem: the key lacks a scope.
        """
        for scope in scopes:
            if scope not in self.scopes:
                raise Problem(
                    HTTPStatus.FORBIDDEN,
                    "forbidden",
                    f"the key lacks the scope `{scope}`; ask the operator for a key with this scope",
                )

    def require_permission(self, scope: Scope, user: str | None = None) -> None:
        """Check that the key permits a request.

        If `user` is None, the request concerns all users of the tenant.

        Raises:
            Problem: the key does not permit the request.
        """
        self.require_scopes(scope)
        if self.user is not None and user != self.user:
            raise Problem(
                HTTPStatus.FORBIDDEN,
                "forbidden",
                "the key is for one user, and the request concerns another user or all users; name the user "
                "of the key, or use a key for all users",
            )


class Callers:
    """Callers of this process: checks the keys of requests, and counts the open requests of each tenant."""

    def __init__(self, keys: ApiKeys) -> None:
        self._keys = keys
        self._attempts = LoginAttempts()
        self._open: Counter[str | None] = Counter()

    async def identify(self, address: str, credentials: HTTPAuthorizationCredentials | None) -> Caller:
        """Return the caller of a request.

        Args:
            address: IP address of the client. After several wrong keys, its requests without a valid key are
                refused for a while; valid keys are accepted, because clients behind a proxy share an address.
            credentials: the key in the header `Authorization`; None if it has no bearer key.

        Raises:
            Problem: the key is missing, wrong or revoked, the address has to wait, or the process looks up
                too many unknown keys.
            nats.errors.Error: the key cannot be looked up now.
        """
        sent = credentials.credentials if credentials else ""
        key = await self._find_key(sent)
        if key is not None:
            self._attempts.record_success(address)
            return Caller(key.tenant, key.scopes, key.user, sent)
        if wait := self._attempts.get_wait(address):
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too_many_requests",
                f"too many wrong keys from this address; try again in {ceil(wait)} s",
                headers={"Retry-After": str(ceil(wait))},
            )
        if credentials is None:
            raise _build_unauthorized(
                "the request has no key; send the header `Authorization: Bearer KEY`. The operator creates "
                "keys with `mnemon auth key create`"
            )
        self._attempts.record_failure(address)
        raise _build_unauthorized(
            "the key is wrong or revoked; check the key, or ask the operator for another"
        )

    async def is_accepted(self, caller: Caller) -> bool:
        """Return whether the key of a caller is still valid and its permissions have not changed.

        Raises:
            Problem: the process looks up too many unknown keys.
            nats.errors.Error: the key cannot be looked up now.
        """
        key = await self._find_key(caller.key)
        return key is not None and (key.scopes, key.user) == (caller.scopes, caller.user)

    async def _find_key(self, sent: str) -> ApiKey | None:
        try:
            return await self._keys.find(sent)
        except TooManyLookups as error:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "unavailable",
                "this gateway is checking too many other keys; repeat the request in a second",
                retryable=True,
            ) from error

    def open_request(self, tenant: str | None) -> None:
        """Count a request of a tenant as open.

        The tenant is None if the key could not be checked.

        Raises:
            Problem: the process or the tenant has too many open requests.
        """
        if self._open.total() >= MAX_OPEN_REQUESTS:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "unavailable",
                f"this gateway has its maximum of {MAX_OPEN_REQUESTS} open requests; repeat the request in a "
                "second",
                retryable=True,
            )
        if tenant is not None and self._open[tenant] >= MAX_OPEN_REQUESTS_OF_TENANT:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too_many_requests",
                f"the tenant has {MAX_OPEN_REQUESTS_OF_TENANT} open requests at this gateway; wait until "
                "one of them ends before the next request",
                retryable=True,
            )
        self._open[tenant] += 1

    def close_request(self, tenant: str | None) -> None:
        """Stop counting a request of a tenant as open, answered or not."""
        self._open[tenant] -= 1
        if not self._open[tenant]:
            del self._open[tenant]


def read_credentials(connection: HTTPConnection) -> HTTPAuthorizationCredentials | None:
    """Return the key in the header `Authorization` of a request; None if it has no bearer key."""
    scheme, given = get_authorization_scheme_param(connection.headers.get("Authorization"))
    if scheme.lower() != "bearer" or not given:
        return None
    return HTTPAuthorizationCredentials(scheme=scheme, credentials=given)


async def get_caller(
    request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
) -> Caller:
    """Return the caller whom `KeyCheck` identified.

    The parameter `_` only adds `BEARER` to the OpenAPI document.
    """
    caller: Caller = request.scope[CALLER]
    return caller


CallerOfRequest = Annotated[Caller, Depends(get_caller)]


def _build_unauthorized(detail: str) -> Problem:
    return Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
