"""Folders of vectors change places. Whatever a kill leaves, the next who opens them puts right."""

from pathlib import Path
from typing import Final

from mnemon_infra.vectors.embedding_metadata import RECORD

_ASIDE: Final = "_aside"
_FORMER: Final = "_before"


def former_of(live: Path) -> Path:
    """Where the folder goes that is live no more."""
    return live.with_name(live.name + _FORMER)


def exchange(live: Path, to: Path) -> None:
    """Put one folder in the place of the live one, which becomes the former; there must be none.

    Files in them may be open to be read. What is written by name would go astray.
    """
    aside = live.with_name(live.name + _ASIDE)
    live.rename(aside)
    to.rename(live)
    aside.rename(former_of(live))


def undo(live: Path, to: Path) -> None:
    """Everything as it was before `exchange`."""
    live.rename(to)
    former_of(live).rename(live)


def settle(live: Path) -> None:
    """End an exchange that was cut off: before the other was live it counts for nothing."""
    aside = live.with_name(live.name + _ASIDE)
    if aside.exists():
        aside.rename(former_of(live) if (live / RECORD).exists() else live)
