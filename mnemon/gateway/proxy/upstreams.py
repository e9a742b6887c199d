"""Providers to which the proxy passes requests: their addresses, their keys, and the headers that pass."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment

OPENAI_URL: Final = "https://api.openai.com/v1"
ANTHROPIC_URL: Final = "https://api.anthropic.com"

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of one connection (RFC 9110, section 7.6.1)."""

_OWN_OF_REQUEST: Final = frozenset({"host", "content-length", "accept-encoding", "expect", "cookie"})
_CREDENTIALS: Final = frozenset({"authorization", "x-api-key"})


class Upstream(NamedTuple):
    """Address and key of a provider.

    Attributes:
        url: address, without a slash at the end.
        key: the configured key; None if none is configured.
        key_header: header that carries the key.
        key_prefix: text before the key in the header.
    """

    url: str
    key: str | None
    key_header: str
    key_prefix: str = ""


class Upstreams(NamedTuple):
    """The providers to which the proxy of a deployment passes requests."""

    openai: Upstream = Upstream(OPENAI_URL, None, "authorization", "Bearer ")
    anthropic: Upstream = Upstream(ANTHROPIC_URL, None, "x-api-key")

    @classmethod
    def from_deployment(cls, deployment: "Deployment") -> Self:
        """Return the providers of a deployment, at their own addresses unless the deployment names others."""
        openai, anthropic = deployment.model_api_key, deployment.anthropic_api_key
        return cls(
            Upstream(
                (deployment.model_url or OPENAI_URL).rstrip("/"),
                openai.get_secret_value() if openai else None,
                "authorization",
                "Bearer ",
            ),
            Upstream(
                (deployment.anthropic_url or ANTHROPIC_URL).rstrip("/"),
                anthropic.get_secret_value() if anthropic else None,
                "x-api-key",
            ),
        )


def select_request_headers(
    headers: Headers, upstream: Upstream, *, has_own_key: bool
) -> list[tuple[str, str]]:
    """Return the headers of a request that pass to a provider.

    Args:
        headers: headers of the client.
        upstream: the provider.
        has_own_key: whether the client sends the provider's key itself; if not, the configured key is added.
    """
    dropped = _HOP_BY_HOP | _OWN_OF_REQUEST | (frozenset() if has_own_key else _CREDENTIALS)
    passed = [
        (name, value)
        for name, value in headers.items()
        if name not in dropped and not name.startswith("mnemon-")
    ]
    if not has_own_key and upstream.key:
        passed.append((upstream.key_header, upstream.key_prefix + upstream.key))
    # The answer is read on its way, so it must not be compressed.
    return [*passed, ("accept-encoding", "identity")]


def select_response_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a provider's response that pass to the client."""
    dropped = {name.encode() for name in _HOP_BY_HOP} | {b"date"}  # this server sends its own date
    return [(name.lower(), value) for name, value in headers if name.lower() not in dropped]
