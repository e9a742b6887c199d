"""`mnemon erase`."""

from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.memory.requests import ask
from mnemon.cli.target import DataOption, target
from mnemon.cli.terminal.exit_code import Ending, refuse
from mnemon.cli.terminal.output import JsonOption, show_table

if TYPE_CHECKING:
    from mnemon_contracts.verbs.tools import EraseReplyV1

_PROVIDERS_KEEP = "providers of models keep what they were sent for as long as they keep batches: "
_VECTORS_STAY = "vectors, without text, stay in other generations until `mnemon rebuild --drop`: "


def erase(
    tenant: Annotated[str, typer.Argument(help="The tenant that the user belongs to.")],
    user: Annotated[str, typer.Argument(help="Who is to be forgotten.")],
    conversation: Annotated[
        str | None, typer.Option(help="Forget this conversation only, and what nothing else has taught.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Erase nothing; look what is left. Ends with 1 if anything is.")
    ] = False,
    text: Annotated[
        str | None,
        typer.Option(help="With --verify: look for these words, too, in all that there is of the user."),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget a user, or one conversation, for good, in every store, and show a receipt.

    What the user says afterwards is remembered anew. Ends with 1 while a store is not done.

    Example: `mnemon erase acme u42 --yes && mnemon erase acme u42 --verify`
    """
    if text is not None and not verify:
        refuse(Ending.WRONG_USE, "--text goes with --verify only")
    target(data, "broker")  # check the servers before asking for a confirmation
    whom = f"conversation {conversation} of {user}" if conversation else user
    if not verify and not yes and not _meant(f"Forget {whom} of {tenant} for good?"):
        refuse(Ending.NOT_SO, "nothing is forgotten", "Where nobody can be asked: --yes")
    ask(
        lambda memory: memory.erase(user, conversation=conversation, verify=verify, text=text),
        _show_left if verify else _show_receipt,
        tenant=tenant,
        data=data,
        as_json=as_json,
        ending=_clean_or_not if verify else _done_or_not,
    )


def _meant(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        typer.echo(err=True)  # end the line of the question
        return False


def _show_receipt(reply: "EraseReplyV1") -> None:
    typer.secho(f"forgotten is what lies below log position {reply.seen_seq}", dim=True)
    rows = [*reply.removed.items(), *((store, "pending") for store in reply.pending)]
    show_table(("store", "removed"), rows)
    if reply.provider_batches:
        typer.echo(_PROVIDERS_KEEP + ", ".join(reply.provider_batches))
    if reply.generations:
        typer.echo(_VECTORS_STAY + ", ".join(reply.generations))


def _done_or_not(reply: "EraseReplyV1") -> Ending:
    if reply.pending:
        typer.secho(f"not done yet: {', '.join(reply.pending)}; it goes on by itself", fg="yellow", err=True)
    return Ending.NOT_SO if reply.pending else Ending.DONE


def _show_left(reply: "EraseReplyV1") -> None:
    show_table(("store", "left"), (reply.left or {}).items())
    if reply.found is not None:
        show_table(("store", "with the words"), reply.found.items())


def _clean_or_not(reply: "EraseReplyV1") -> Ending:
    left = reply.left or {}
    if "vectors" not in left:
        typer.secho("vectors could not be looked at", fg="yellow", err=True)
    is_clean = "vectors" in left and not any((*left.values(), *(reply.found or {}).values()))
    return Ending.DONE if is_clean else Ending.NOT_SO
