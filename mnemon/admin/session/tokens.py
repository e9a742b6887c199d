"""The secrets of the page: the token of a folder, and the keys of links that log in once."""

import secrets
from pathlib import Path

from mnemon_infra.process.data_folder import replace


def token_of(data: Path) -> str:
    """The token of a folder, made when it is first asked for; only this user may read it.

    Raises:
        OSError: it can be neither read nor written.
    """
    path = kept_in(data) / "token"
    try:
        kept = path.read_text("utf-8").strip()
    except FileNotFoundError:
        kept = ""
    if not kept:
        kept = new_token()
        replace(path, kept + "\n")
    return kept


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)


def new_link() -> str:
    """What a link has in it that logs in once."""
    return secrets.token_urlsafe(24)


def kept_in(data: Path) -> Path:
    """Where the page keeps what is its own; the folder is made if absent."""
    folder = data / "admin"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
