"""Secrets for the login to the admin page: the token kept in a data folder, and keys of one-time links."""

import secrets
from pathlib import Path

from mnemon_infra.process.data_folder import replace_file


def load_token(data: Path) -> str:
    """Return the token of a folder; create it on first use. Only this account may read it.

    Raises:
        OSError: the token can be neither read nor written.
    """
    path = open_admin_folder(data) / "token"
    try:
        kept = path.read_text("utf-8").strip()
    except FileNotFoundError:
        kept = ""
    if not kept:
        kept = create_token()
        replace_file(path, kept + "\n")
    return kept


def create_token() -> str:
    """Return a random token of 32 bytes."""
    return secrets.token_urlsafe(32)


def create_link_key() -> str:
    """Return a random key of 24 bytes for a link that logs in once."""
    return secrets.token_urlsafe(24)


def open_admin_folder(data: Path) -> Path:
    """Return the folder of the page's own files; create it if absent."""
    folder = data / "admin"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
