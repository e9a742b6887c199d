"""`mnemon forget`."""

import sys
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mnemon.cli.asking import TenantOption, UserOption, ask
from mnemon.cli.ending import Ending, refuse
from mnemon.cli.output import JsonOption
from mnemon.cli.target import DataOption
from mnemon.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contracts.tools import ForgetCandidate, ForgetReplyV1, SaveV1
    from producers.client import MemoryClient

_NONE: Final = 0
"""The number that chooses no candidate."""


def forget(
    tenant: TenantOption,
    user: UserOption,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="The fact, such as pf_001.")] = None,
    query: Annotated[
        str | None, typer.Option(help="Or words that name the fact; asks where they may mean several.")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove one fact: by its id, or by words that clearly mean one fact.

    Where they do not, it asks which fact is meant; without a terminal, or with --json, it shows the
    candidates and removes nothing. Shows the command that brings the fact back.

    Ends with 1 when nothing is removed.

    Example: `mnemon forget pf_001 --tenant acme --user u42`
    """
    whose = f"--tenant {quote(tenant)} --user {quote(user)}" + (f" --data {quote(str(data))}" if data else "")

    async def question(memory: "MemoryClient") -> "ForgetReplyV1":
        reply = await memory.forget(user, id_, query=query)
        if reply.candidates and not as_json and sys.stdin.isatty():
            reply = await memory.forget(user, _choose(reply.candidates))
        return reply

    def show(reply: "ForgetReplyV1") -> None:
        if reply.id is None:
            _show_candidates(reply.candidates)
            return
        typer.echo(f"forgotten: {reply.id} {printable(reply.text or '')}")
        if reply.restore is not None:
            typer.secho(f"  to bring it back: {restoring_command(reply.restore, whose)}", dim=True)

    def ending(reply: "ForgetReplyV1") -> Ending:
        if reply.id is not None:
            return Ending.DONE
        typer.echo("mnemon: nothing is forgotten: the query may mean several facts, or another one", err=True)
        typer.echo(f"  Forget one by its id: mnemon forget {reply.candidates[0].id} {whose}", err=True)
        return Ending.NOT_SO

    ask(
        question,
        show,
        tenant=tenant,
        data=data,
        as_json=as_json,
        ending=ending,
        absent=f"mnemon read --tenant {tenant} --user {user}",
    )


def restoring_command(restore: "SaveV1", whose: str) -> str:
    """Return the command that saves a fact again; `whose` are the options that name the user."""
    options = [
        whose,
        f"--kind {restore.kind}",
        f"--tier {restore.tier}",
        f"--importance {restore.importance}",
    ]
    if restore.expires_at is not None:
        options.append(f"--expires {restore.expires_at:%Y-%m-%dT%H:%M:%S}")
    # A text that begins with a dash is no option.
    return f"mnemon save {' '.join(options)} -- {quote(printable(restore.text))}"


def _choose(candidates: "Sequence[ForgetCandidate]") -> str:
    """Ask which fact is meant; returns its id. Ends the command where it is none of them."""
    for number, candidate in enumerate(candidates, 1):
        typer.echo(f"{number:>3}  {candidate.id}  {printable(candidate.text)}", err=True)
    question = f"Which one is meant? 1 to {len(candidates)}, or {_NONE} for none"
    chosen = -1
    while not _NONE <= chosen <= len(candidates):
        chosen = typer.prompt(question, default=_NONE, type=int, err=True)
    if chosen == _NONE:
        refuse(Ending.NOT_SO, "nothing is forgotten")
    return candidates[chosen - 1].id


def _show_candidates(candidates: "Sequence[ForgetCandidate]") -> None:
    for candidate in candidates:
        typer.echo(
            f"- [{candidate.score:.3f}] [{candidate.id}] {printable(' '.join(candidate.text.split()))}"
        )
