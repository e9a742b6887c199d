"""Command `mnemon history`: show the last messages of a user."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from mnemon.cli.memory.requests import AsOfOption, MemoryRequest, TenantOption, parse_as_of
from mnemon.cli.options.target import DataOption
from mnemon.cli.terminal.exit_code import ExitCode, refuse
from mnemon.cli.terminal.output import JsonOption, show_message
from mnemon.display_text import format_count, make_printable

if TYPE_CHECKING:
    from mnemon_contracts.verbs.ask import HistoryReplyV1


class HistoryCommand(TyperCommand):
    """Command whose usage line leaves out hidden arguments; Typer shows them."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line for the options and for the arguments that are not hidden."""
        shown = [each for each in self.get_params(ctx) if not getattr(each, "hidden", False)]
        arguments = [piece for each in shown for piece in each.get_usage_pieces(ctx)]
        return [self.options_metavar or "", *arguments]


def history(
    tenant: TenantOption,
    user: Annotated[str | None, typer.Option(help="User of the conversation. Required.")] = None,
    named: Annotated[
        str | None, typer.Argument(help="User of the conversation; an older form of --user.", hidden=True)
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(help="Conversation to show. Default: the current conversation.")
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            min=1,
            max=1000,
            help="Maximum number of entries to show: the newest messages, and the tools that they called.",
        ),
    ] = 30,
    before: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="SEQ", help="Show only messages before this log position. Default: all messages."
        ),
    ] = None,
    as_of_: AsOfOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a user's last messages, oldest first.

    If there may be older messages, the command ends with the options that show them.

    Example: `mnemon history --tenant acme --user u42 --data ./memory`
    """
    user_id = user or named
    if user_id is None or (user and named):
        refuse(
            ExitCode.USAGE_ERROR,
            "the user is missing or given twice",
            "Give the user once, such as --user u42",
        )
    then = parse_as_of(as_of_)
    MemoryRequest(tenant, user_id, data, as_json).send(
        lambda memory: memory.history(
            user_id, conversation=conversation, limit=limit, before=before, as_of=then
        ),
        lambda reply: _show_messages(reply, limit, as_of_),
    )


def _show_messages(reply: "HistoryReplyV1", limit: int, as_of: str | None) -> None:
    conversation = make_printable(str(reply.conversation))
    typer.secho(f"conversation {conversation}, as of log position {reply.seen_seq}", dim=True)
    if reply.left_out:
        typer.secho(
            f"{format_count(reply.left_out, 'older entry')} left out: a reply has no room for more.",
            dim=True,
        )
    for message in reply.messages:
        speaker = make_printable(message.name or message.role)
        show_message(f"{message.sent_at:%Y-%m-%d %H:%M}  {speaker:>10}", message.content)
    if not reply.messages:
        typer.echo("no messages")
    elif reply.may_have_older_messages(limit):
        older = f"--conversation {quote(reply.conversation or '')} --before {reply.messages[0].seq}"
        if as_of is not None:
            older += f" --as-of {quote(as_of)}"
        typer.secho(f"older messages, if there are any: {older}", dim=True, err=True)
