"""Command `mnemon context`: show the context for the next answer."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.memory.requests import (
    AsOfOption,
    MemoryRequest,
    MinSeqOption,
    NowOption,
    PrecedingOption,
    parse_as_of,
    parse_now,
)
from mnemon.cli.options.option_group import expand_options
from mnemon.cli.terminal.output import show_message
from mnemon.display_text import make_printable

if TYPE_CHECKING:
    from mnemon_contracts.verbs.ask import Reply


@expand_options
def context(
    request: MemoryRequest,
    query: Annotated[
        str | None,
        typer.Option(
            help="User's message, for which relevant memory is found. Default: the user's last message."
        ),
    ] = None,
    preceding: PrecedingOption = None,
    now: NowOption = None,
    format_: Annotated[
        str, typer.Option("--format", help="Format of the context: messages, xml, blocks or markdown.")
    ] = "messages",
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum tokens of the context. Default: the setting `context.budget`."),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(help="Conversation of the context. Default: the current conversation.")
    ] = None,
    task_id: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="Id that the bot has given to messages as `task_id`; the tool results among these messages "
            "are added to the query. Default: none.",
        ),
    ] = None,
    min_seq: MinSeqOption = None,
    as_of_: AsOfOption = None,
) -> None:
    """Show the context that a bot would give to a model for its next answer.

    A line on standard error counts the tokens of the context and of each section. Each section is counted
    separately; their sum differs by a few tokens from the total. Further lines count the messages that are
    shown, in summaries and left out, and name what could not be read or searched.

    Example: `mnemon context --tenant acme --user u42 --query "how does she travel?" --format xml`
    """
    wanted: dict[str, Any] = {
        "query": query,
        "preceding": preceding or None,
        "now": parse_now(now),
        "format": format_,
        "budget": budget,
        "conversation": conversation,
        "task_id": task_id,
        "min_seq": min_seq,
        "as_of": parse_as_of(as_of_),
    }
    request.send(
        # `memory.context` never raises, and would hide an error.
        lambda memory: memory.ask(request.user, "context", **wanted),
        _show_context,
    )


def _show_context(reply: "Reply") -> None:
    from mnemon_contracts.verbs.ask import ContextReplyV1

    assert isinstance(reply, ContextReplyV1)
    if reply.text is not None:
        typer.echo(make_printable(reply.text))
    else:
        for message in reply.messages:
            show_message(f"{make_printable(message.name or message.role):>10}", message.content)
    sections = ", ".join(
        f"{name} {section.tokens}" + (f" ({section.left_out} left out)" if section.left_out else "")
        for name, section in reply.sections.items()
    )
    typer.secho(f"{reply.tokens} tokens{': ' if sections else ''}{sections}", dim=True, err=True)
    if (where := reply.coverage) and where.summarised + where.left_out:
        typer.secho(
            f"messages: {where.shown} shown, {where.summarised} in summaries, {where.left_out} left out",
            dim=True,
            err=True,
        )
    if reply.degraded:
        typer.secho(f"missing: {', '.join(reply.degraded)}", fg="red", err=True)
