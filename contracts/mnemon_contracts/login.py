"""How a bot and a consumer log in to NATS: from the environment, in the words of nats-py."""

import re
import ssl
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

CREDENTIALS: Final = "MNEMON_NATS_CREDENTIALS"
NKEY_SEED: Final = "MNEMON_NATS_NKEY_SEED"
AUTHORITY: Final = "MNEMON_NATS_CA"
CERTIFICATE: Final = "MNEMON_NATS_CERTIFICATE"
CERTIFICATE_KEY: Final = "MNEMON_NATS_CERTIFICATE_KEY"
"""Each names a file; what is in it is not repeated in any message."""


class LoginUnusable(ValueError):
    """A variable names what cannot be used; the message says which and why."""


def login_options(url: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `nats.connect` that log in and encrypt the way to the server.

    Args:
        url: the servers; a user and password in it go before the files.
        environment: the variables of this module; what is empty is not set.

    Raises:
        LoginUnusable: a file is absent or is not what it should be.
    """
    options: dict[str, Any] = {}
    if not re.search(r"//[^/,]*@", url):
        if credentials := _file(environment, CREDENTIALS):
            options["user_credentials"] = credentials
        elif seed := _file(environment, NKEY_SEED):
            options["nkeys_seed"] = seed
        if options and not find_spec("nkeys"):
            raise LoginUnusable("logging in with keys needs a package more: pip install 'mnemon[nkeys]'")
    authority = _file(environment, AUTHORITY)
    certificate, key = _file(environment, CERTIFICATE), _file(environment, CERTIFICATE_KEY)
    if authority or certificate:
        options["tls"] = _context(authority, certificate, key)
    return options


def _file(environment: Mapping[str, str], variable: str) -> str | None:
    path = environment.get(variable)
    if not path:
        return None
    try:
        with Path(path).open("rb"):
            return path
    except OSError as error:
        raise LoginUnusable(f"{variable}: {path} cannot be read: {error.strerror}") from error


def _context(authority: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=authority)
    except ssl.SSLError as error:
        raise LoginUnusable(f"{AUTHORITY}: {authority} holds no certificate") from error
    if certificate:
        try:
            context.load_cert_chain(certificate, key)
        except ssl.SSLError as error:
            raise LoginUnusable(
                f"{CERTIFICATE}: {certificate} holds no certificate, or {CERTIFICATE_KEY} not its key"
            ) from error
    return context
