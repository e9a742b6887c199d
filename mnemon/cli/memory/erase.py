"""Command `mnemon erase`: erase a user or a conversation."""

from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.memory.requests import MemoryRequest
from mnemon.cli.options.target import DataOption, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, refuse
from mnemon.cli.terminal.output import JsonOption, show_table

if TYPE_CHECKING:
    from mnemon_contracts.verbs.tools import EraseReplyV1
    from mnemon_producers.client import MemoryClient

_PROVIDERS_KEEP = "model providers keep the text of these batches until they delete the batches: "
_VECTORS_STAY = "vectors, without text, stay in these generations until `mnemon rebuild --drop`: "


def erase(
    tenant: Annotated[str | None, typer.Argument(metavar="TENANT", help="Tenant of the user.")] = None,
    user: Annotated[str | None, typer.Argument(metavar="USER", help="User to erase.")] = None,
    tenant_option: Annotated[
        str | None, typer.Option("--tenant", help="Tenant of the user, instead of TENANT.")
    ] = None,
    user_option: Annotated[str | None, typer.Option("--user", help="User to erase, instead of USER.")] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            help="Erase this conversation only, with the facts that were extracted from it alone. Default: "
            "the whole user."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Erase without confirmation.")] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Erase nothing; count the remaining items in each store. Exits with code 1 if any item "
            "remains, if a stored text contains --text, or if the vectors cannot be checked.",
        ),
    ] = False,
    text: Annotated[
        str | None,
        typer.Option(
            help="With --verify: text to search for, as a whole and in any letter case, in all stored texts "
            "of the user, those saved after the erasure included. Default: none."
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase a user, or one conversation, for good from every store, and show a receipt.

    The receipt also names what stays for a time: batches at model providers, and vectors without text in
    generations that are not live. Messages that the user sends afterwards are remembered again.

    Exits with code 1 if you do not confirm; if a store has not finished yet, and the erasure continues in the
    background; or if there was nothing to erase, and no erasure before this one.

    Example: `mnemon erase acme u42 --yes && mnemon erase acme u42 --verify`
    """
    if text is not None and not verify:
        refuse(
            ExitCode.USAGE_ERROR,
            "--text works only together with --verify: add --verify, or leave --text out",
        )
    tenant, user = _choose_owner((tenant, user), (tenant_option, user_option))
    require_deployment(data, "broker")  # check the servers before asking for a confirmation
    whom = f"conversation {conversation} of {user}" if conversation else user
    if not verify and not yes and not _confirm_erasure(f"Erase {whom} of {tenant} for good?"):
        refuse(ExitCode.NEGATIVE_RESULT, "nothing was erased", "To erase without confirmation: --yes")
    request = MemoryRequest(tenant, user, data, as_json)
    if verify:
        request.send(
            lambda memory: memory.erase(user, conversation=conversation, verify=True, text=text),
            _show_remaining,
            conclude=_conclude_verification,
        )
    erasure = _CheckedErasure(tenant, user, conversation)
    request.send(erasure.perform, _show_receipt, conclude=erasure.conclude)


def _choose_owner(
    arguments: tuple[str | None, str | None], options: tuple[str | None, str | None]
) -> tuple[str, str]:
    """Return tenant and user, which are both arguments or both options; else end the command."""
    given = [each for each in (*arguments, *options) if each is not None]
    if len(given) != 2 or (None, None) not in (arguments, options):
        refuse(
            ExitCode.USAGE_ERROR,
            "tenant and user have to be given once, both as arguments or both as options",
            "For example: mnemon erase acme u42, or mnemon erase --tenant acme --user u42",
        )
    tenant, user = given
    return tenant, user


class _CheckedErasure:
    """Erasure of a user or a conversation, which tells whether there was anything to erase."""

    def __init__(self, tenant: str, user: str, conversation: str | None) -> None:
        self._tenant = tenant
        self._user = user
        self._conversation = conversation
        self._is_known = True

    async def perform(self, memory: "MemoryClient") -> "EraseReplyV1":
        before = await memory.erase(self._user, conversation=self._conversation, verify=True)
        self._is_known = before.seen_seq > 0 or any((before.left or {}).values())
        return await memory.erase(self._user, conversation=self._conversation)

    def conclude(self, reply: "EraseReplyV1") -> ExitCode:
        if reply.pending:
            typer.secho(
                f"not done yet: {', '.join(reply.pending)}; the erasure continues in the background",
                fg="yellow",
                err=True,
            )
        if not self._is_known:
            user = f"user {self._user!r} of tenant {self._tenant!r}"
            erased = f"conversation {self._conversation!r} of {user}" if self._conversation else user
            refuse(
                ExitCode.NEGATIVE_RESULT,
                f"{erased} had no memory, and was not erased before",
                "Check the spelling: ids are the ones that bots use",
            )
        return ExitCode.NEGATIVE_RESULT if reply.pending else ExitCode.DONE


def _confirm_erasure(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        typer.echo(err=True)  # end the line of the question
        return False


def _show_receipt(reply: "EraseReplyV1") -> None:
    typer.secho(f"erasure of content below log position {reply.seen_seq}", dim=True)
    rows = [*reply.removed.items(), *((store, "pending") for store in reply.pending)]
    show_table(("store", "removed"), rows)
    if reply.provider_batches:
        typer.echo(_PROVIDERS_KEEP + ", ".join(reply.provider_batches))
    if reply.generations:
        typer.echo(_VECTORS_STAY + ", ".join(reply.generations))


def _show_remaining(reply: "EraseReplyV1") -> None:
    show_table(("store", "left"), (reply.left or {}).items())
    if reply.found is not None:
        show_table(("store", "with these words"), reply.found.items())


def _conclude_verification(reply: "EraseReplyV1") -> ExitCode:
    left = reply.left or {}
    if "vectors" not in left:
        typer.secho("vectors could not be checked", fg="yellow", err=True)
    is_clean = "vectors" in left and not any((*left.values(), *(reply.found or {}).values()))
    return ExitCode.DONE if is_clean else ExitCode.NEGATIVE_RESULT
