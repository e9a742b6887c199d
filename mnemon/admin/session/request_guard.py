"""Middleware that checks the host and the origin of requests, and adds security headers to responses."""

from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mnemon_infra.telemetry.host_header import is_address_or_localhost, parse_host_name

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # With `no-referrer` a browser would not send the origin of a form.
    "referrer-policy": "same-origin",
}


class RequestGuard:
    """ASGI middleware that refuses forms from other sites, and keeps pages with memory out of caches.

    The guard detects a site whose name resolves to this machine (DNS rebinding): it accepts only IP
    addresses, `localhost` and `names` in the header `Host`.
    """

    def __init__(self, application: ASGIApp, names: Collection[str] = ()) -> None:
        self._application = application
        self._names = {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_known_host(host):
            said = (
                f"{parse_host_name(host) or 'this'!r} is not a known name of this page. "
                "Open the page by its IP address or localhost, or serve it with a command that allows the "
                "name: mnemon admin --allow-host NAME\n"
            )
            await PlainTextResponse(said, 421, _HEADERS)(scope, receive, send)
            return
        origin = headers.get("origin", "")
        if scope["method"] not in ("GET", "HEAD") and _parse_host(origin) != host:
            said = (
                f"The request came from {origin or 'no Origin'}, not from {host}, and was refused. "
                "Open the page at its own address and try again.\n"
            )
            await PlainTextResponse(said, 403, _HEADERS)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                sent.update(_HEADERS)
                # Browsers may keep static files if they revalidate them; they must not store pages.
                is_static = scope["path"].startswith("/static/")
                sent["cache-control"] = "no-cache" if is_static else "no-store"
            await send(message)

        await self._application(scope, receive, send_with_headers)

    def _is_known_host(self, host: str) -> bool:
        name = parse_host_name(host)
        return name in self._names or is_address_or_localhost(name)


def _parse_host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
