"""`mnemon forget`."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.memory.candidates import can_ask, choose_candidate, show_candidates
from mnemon.cli.memory.requests import TenantOption, UserOption, send_request
from mnemon.cli.target import DataOption
from mnemon.cli.terminal.exit_code import Ending
from mnemon.cli.terminal.output import JsonOption
from mnemon.cli.terminal.text import make_printable

if TYPE_CHECKING:
    from mnemon_contracts.verbs.tools import ForgetReplyV1, SaveV1
    from mnemon_producers.client import MemoryClient


def forget(
    tenant: TenantOption,
    user: UserOption,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="Id of the fact, such as pf_001.")] = None,
    query: Annotated[str | None, typer.Option(help="Words that name the fact, instead of its id.")] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget one fact, named by its id or by words that clearly mean one fact.

    If the words may mean several facts, the command asks which one is meant; without a terminal, or with
    --json, it shows the candidates and removes nothing. It prints the command that restores the fact.

    Ends with 1 when nothing is removed.

    Example: `mnemon forget pf_001 --tenant acme --user u42`
    """
    whose = f"--tenant {quote(tenant)} --user {quote(user)}" + (f" --data {quote(str(data))}" if data else "")

    async def question(memory: "MemoryClient") -> "ForgetReplyV1":
        reply = await memory.forget(user, id_, query=query)
        if reply.candidates and can_ask(as_json):
            reply = await memory.forget(user, choose_candidate(reply.candidates, "nothing was forgotten"))
        return reply

    def show(reply: "ForgetReplyV1") -> None:
        if reply.id is None:
            show_candidates(reply.candidates)
            return
        typer.echo(f"forgotten: {reply.id} {make_printable(reply.text or '')}")
        if reply.restore is not None:
            typer.secho(f"  to restore it: {spell_restore_command(reply.restore, whose)}", dim=True)

    def ending(reply: "ForgetReplyV1") -> Ending:
        if reply.id is not None:
            return Ending.DONE
        typer.echo("mnemon: nothing was forgotten: the query does not clearly mean one fact", err=True)
        typer.echo(f"  Forget one by its id: mnemon forget {reply.candidates[0].id} {whose}", err=True)
        return Ending.NOT_SO

    send_request(
        question,
        show,
        tenant=tenant,
        data=data,
        as_json=as_json,
        ending=ending,
        absent=f"mnemon read --tenant {tenant} --user {user}",
    )


def spell_restore_command(restore: "SaveV1", whose: str) -> str:
    """Return the command that saves a fact again; `whose` are the options that name the user."""
    options = [
        whose,
        f"--kind {restore.kind}",
        f"--tier {restore.tier}",
        f"--importance {restore.importance}",
    ]
    if restore.expires_at is not None:
        options.append(f"--expires {restore.expires_at:%Y-%m-%dT%H:%M:%S}")
    # `--` keeps a text that begins with a dash from being an option.
    return f"mnemon save {' '.join(options)} -- {quote(make_printable(restore.text))}"
