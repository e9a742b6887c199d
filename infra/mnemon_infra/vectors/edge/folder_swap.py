"""Swap of two folders of vectors.

The next process that opens the folders completes or rolls back a swap that a kill has interrupted.
"""

from pathlib import Path
from typing import Final

from mnemon_infra.vectors.embedding_metadata import RECORD

_ASIDE: Final = "_aside"
_FORMER: Final = "_before"


def build_former_path(live: Path) -> Path:
    """Return the path to which a swap moves the folder that was live."""
    return live.with_name(live.name + _FORMER)


def swap_folders(live: Path, to: Path) -> None:
    """Move the live folder to the path of `build_former_path`, and the folder `to` to the live path.

    Nothing may exist at the path of `build_former_path`. Files of both folders may be open for reading.
    Writes by path during the swap could reach the wrong folder.
    """
    aside = live.with_name(live.name + _ASIDE)
    live.rename(aside)
    to.rename(live)
    aside.rename(build_former_path(live))


def undo_swap(live: Path, to: Path) -> None:
    """Undo `swap_folders`, called with the same paths."""
    live.rename(to)
    build_former_path(live).rename(live)


def settle_swap(live: Path) -> None:
    """Complete an interrupted swap, or roll it back if the new folder was not live yet."""
    aside = live.with_name(live.name + _ASIDE)
    if aside.exists():
        aside.rename(build_former_path(live) if (live / RECORD).exists() else live)
