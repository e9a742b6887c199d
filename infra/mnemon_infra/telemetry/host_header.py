"""Checks of the header `Host`, which prevent DNS rebinding: a site's name that resolves to this machine."""

import ipaddress
from urllib.parse import urlsplit


def parse_host_name(host: str) -> str:
    """Return the host in lower case, without its port; "" if the header has no host or is invalid."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_address_or_localhost(name: str) -> bool:
    """Return whether a name is an IP address or `localhost`, which no site can register as its own name."""
    return name == "localhost" or _parse_address(name) is not None


def is_loopback(name: str) -> bool:
    """Return whether a name means this machine only."""
    address = _parse_address(name)
    return name == "localhost" or (address is not None and address.is_loopback)


def _parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
