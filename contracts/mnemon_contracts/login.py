"""Login of bots and consumers at NATS: environment variables become arguments of nats-py.

Each variable names a file. No error message repeats the contents of a file.
"""

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
"""Variable that names the file with the private key of the client's certificate."""


_LOGIN: Final = re.compile(r"(^|,)(\s*[a-z]+://)?(?:(?!,\s*[a-z]+://).)*@")
"""Pattern of one of several addresses up to the end of its login; a password may contain `,`, `/` and `@`."""


class LoginUnusable(ValueError):
    """A login cannot be used.

    A variable names an unusable file, a private key has no certificate or does not match it, or the package
    `nkeys` is missing.
    """


def read_login_options(url: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `nats.connect` for login and encryption, of which there may be none.

    Args:
        url: the servers; a login in the address takes precedence over `CREDENTIALS` and `NKEY_SEED`.
        environment: variables by name, of which only those of this module are read. An empty variable counts
            as not set.

    Raises:
        LoginUnusable: a file cannot be read or has the wrong contents, a private key has no certificate or
            does not match it, or the package `nkeys` is missing.
    """
    options: dict[str, Any] = {}
    if not _LOGIN.search(url):
        if credentials := _find_readable_file(environment, CREDENTIALS):
            options["user_credentials"] = credentials
        elif seed := _find_readable_file(environment, NKEY_SEED):
            options["nkeys_seed"] = seed
        if options and not find_spec("nkeys"):
            raise LoginUnusable("a login with keys needs the package nkeys: pip install 'mnemon[nkeys]'")
    authority = _find_readable_file(environment, AUTHORITY)
    certificate, key = (
        _find_readable_file(environment, CERTIFICATE),
        _find_readable_file(environment, CERTIFICATE_KEY),
    )
    if key and not certificate:
        raise LoginUnusable(
            f"{CERTIFICATE_KEY} names a private key, but {CERTIFICATE} is not set; set {CERTIFICATE} to the "
            f"file with the certificate, or unset {CERTIFICATE_KEY}"
        )
    if authority or certificate:
        options["tls"] = _create_tls_context(authority, certificate, key)
    return options


def redact_address(url: str) -> str:
    """Return an address with `***` in place of the login, for messages and logs."""
    return _LOGIN.sub(r"\1\2***@", url)


def _find_readable_file(environment: Mapping[str, str], variable: str) -> str | None:
    path = environment.get(variable)
    if not path:
        return None
    try:
        with Path(path).open("rb"):
            return path
    except OSError as error:
        raise LoginUnusable(
            f"{variable}: {path} cannot be read: {error.strerror}. Check the path and its permissions"
        ) from error


def _create_tls_context(authority: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=authority)
    except ssl.SSLError as error:
        raise LoginUnusable(
            f"{AUTHORITY}: {authority} has no certificate in PEM format; set {AUTHORITY} to a file with "
            "the certificate of the authority in PEM format"
        ) from error
    if certificate:
        try:
            context.load_cert_chain(certificate, key)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise LoginUnusable(
                    f"{CERTIFICATE}: the private key in {key or certificate} does not match the certificate "
                    f"in {certificate}; set {CERTIFICATE_KEY} to the file with the key of this certificate"
                ) from error
            raise LoginUnusable(
                f"{CERTIFICATE}: {certificate} has no certificate, or {key or certificate} has no private "
                f"key, in PEM format; set {CERTIFICATE} to the file with the certificate, and "
                f"{CERTIFICATE_KEY} to the file with the key"
            ) from error
    return context
