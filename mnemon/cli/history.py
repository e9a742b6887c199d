"""`mnemon history`."""

from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.ending import Ending, perform, refuse
from mnemon.cli.output import JsonOption
from mnemon.cli.target import DataOption, target

if TYPE_CHECKING:
    from contracts.ask import HistoryReplyV1
    from infra.config import Deployment


def history(
    user: Annotated[str, typer.Argument(help="Whose conversation.")],
    tenant: Annotated[str, typer.Option(help="The tenant that the user belongs to.")],
    conversation: Annotated[
        str | None, typer.Option(help="Which conversation; without it: the current one.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many messages.")] = 30,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a user's last messages, oldest first.

    Example: `mnemon history u42 --tenant acme --data ./memory`
    """
    perform(_history(target(data, "broker"), tenant, user, conversation, limit, as_json))


async def _history(
    deployment: "Deployment", tenant: str, user: str, conversation: str | None, limit: int, as_json: bool
) -> Ending:
    from contracts.subjects import InvalidId
    from producers.client import MemoryClient
    from producers.errors import AskFailed, NotConnected

    try:
        async with MemoryClient.connect(str(deployment.nats_url), tenant=tenant) as memory:
            reply = await memory.history(user, conversation=conversation, limit=limit)
    except InvalidId as error:
        refuse(Ending.WRONG_USE, str(error))
    except (NotConnected, AskFailed) as error:
        refuse(Ending.PART_MISSING, str(error), "Look how it is: mnemon status")
    if as_json:
        typer.echo(reply.model_dump_json(exclude_none=True))
    else:
        _show(reply)
    return Ending.DONE


def _show(reply: "HistoryReplyV1") -> None:
    typer.secho(f"conversation {reply.conversation}, as of log position {reply.seen_seq}", dim=True)
    for message in reply.messages:
        speaker = message.name or message.role
        typer.secho(f"{message.sent_at:%Y-%m-%d %H:%M}  {speaker:>10}  ", dim=True, nl=False)
        typer.echo(message.content)
    if not reply.messages:
        typer.echo("no messages")
