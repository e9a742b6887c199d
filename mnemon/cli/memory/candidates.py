"""Facts that a query may mean: a list, or a question on the terminal."""

import sys
from typing import TYPE_CHECKING, Final

import typer

from mnemon.cli.terminal.exit_code import Ending, refuse
from mnemon.cli.terminal.text import make_printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemon_contracts.verbs.tools import FactCandidate

_NONE: Final = 0
"""The number that chooses no candidate."""


def can_ask(as_json: bool) -> bool:
    """Whether there is a person to ask."""
    return not as_json and sys.stdin.isatty()


def choose_candidate(candidates: "Sequence[FactCandidate]", nothing: str) -> str:
    """Ask which fact is meant; returns its id. Ends the command with `nothing` where it is none of them."""
    for number, candidate in enumerate(candidates, 1):
        typer.echo(f"{number:>3}  {candidate.id}  {make_printable(candidate.text)}", err=True)
    question = f"Which fact do you mean? 1 to {len(candidates)}, or {_NONE} for none"
    chosen = -1
    while not _NONE <= chosen <= len(candidates):
        chosen = typer.prompt(question, default=_NONE, type=int, err=True)
    if chosen == _NONE:
        refuse(Ending.NOT_SO, nothing)
    return candidates[chosen - 1].id


def show_candidates(candidates: "Sequence[FactCandidate]") -> None:
    """Show the facts, best first."""
    for candidate in candidates:
        typer.echo(
            f"- [{candidate.score:.3f}] [{candidate.id}] {make_printable(' '.join(candidate.text.split()))}"
        )
