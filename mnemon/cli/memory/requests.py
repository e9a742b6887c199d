"""Shared parts of commands that send requests about the memory of one user, as a bot does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from mnemon.cli.moment import parse_moment
from mnemon.cli.target import require_deployment
from mnemon.cli.terminal.exit_code import Ending, perform_command, refuse

if TYPE_CHECKING:
    from mnemon_contracts.verbs.ask import ErrorCode, Reply
    from mnemon_infra.config import Deployment
    from mnemon_producers.client import MemoryClient

CommandReply = TypeVar("CommandReply", bound="Reply")

TenantOption = Annotated[str, typer.Option(help="Tenant of the user.")]
UserOption = Annotated[str, typer.Option(help="User whose memory it is.")]
MinSeqOption = Annotated[
    int | None,
    typer.Option("--min-seq", min=0, help="Wait until memory reflects the log up to this position."),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="SEQ|TIME",
        help="Answer as of a log position or time, from a snapshot that `mnemon rebuild --until` made.",
    ),
]
ExpiresOption = Annotated[
    datetime | None,
    typer.Option(
        "--expires", help="Hide the fact from this time on, in UTC: 2026-12-31 or 2026-12-31T18:00:00."
    ),
]
KindOption = Annotated[
    str | None,
    typer.Option(
        help="Kind of the fact: user_fact, preference, event, conversation_insight or conversation_summary."
    ),
]
TierOption = Annotated[str | None, typer.Option(help="Tier of the fact: profile, working or archive.")]
ImportanceOption = Annotated[
    str | None, typer.Option(help="Importance of the fact: high, normal, low, or 1 to 10.")
]

_WRONG_USE: tuple["ErrorCode", ...] = ("bad_request", "unknown_verb", "not_implemented")
_NOT_SO: tuple["ErrorCode", ...] = ("not_found", "refused")


def _end_done(_: "Reply") -> Ending:
    return Ending.DONE


def parse_as_of(given: str | None) -> int | datetime | None:
    """The moment that an `AsOfOption` names. Ends with 2 where it names none."""
    return None if given is None else parse_moment("--as-of", given)


def parse_importance(given: str | None) -> int | str | None:
    """A number where one is given, else the word."""
    return int(given) if given is not None and given.isdecimal() else given


def send_request(
    question: Callable[["MemoryClient"], Awaitable[CommandReply]],
    show: Callable[[CommandReply], None],
    *,
    tenant: str,
    data: Path | None,
    as_json: bool,
    ending: Callable[[CommandReply], Ending] = _end_done,
    absent: str = "",
) -> NoReturn:
    """Ask, show the reply as text or as JSON, and end as `ending` says, which may add to stderr.

    `absent` is the command that shows what there is, for who asks for what is not there.
    """
    if absent:
        absent = f"List them: {absent}" + (f" --data {quote(str(data))}" if data else "")
    perform_command(
        _send_request(require_deployment(data, "broker"), question, show, tenant, as_json, ending, absent)
    )


@asynccontextmanager
async def connect_memory(deployment: "Deployment", tenant: str) -> AsyncIterator["MemoryClient"]:
    """The memory of a tenant's users as long as the block lasts. Ends the command where nobody answers."""
    from mnemon_contracts.subjects import InvalidId
    from mnemon_producers.client import MemoryClient
    from mnemon_producers.errors import NotConnected

    try:
        async with MemoryClient.connect(str(deployment.nats_url), tenant=tenant) as memory:
            yield memory
    except InvalidId as error:
        refuse(Ending.WRONG_USE, str(error))
    except NotConnected as error:
        refuse(Ending.PART_MISSING, str(error), "Check the servers: mnemon status")


async def _send_request(
    deployment: "Deployment",
    question: Callable[["MemoryClient"], Awaitable[CommandReply]],
    show: Callable[[CommandReply], None],
    tenant: str,
    as_json: bool,
    ending: Callable[[CommandReply], Ending],
    absent: str,
) -> Ending:
    from mnemon_contracts.base import InvalidBody
    from mnemon_producers.errors import AskFailed

    try:
        async with connect_memory(deployment, tenant) as memory:
            reply = await question(memory)
    except InvalidBody as error:
        refuse(Ending.WRONG_USE, str(error))
    except AskFailed as failed:
        if failed.error.code in _WRONG_USE:
            refuse(Ending.WRONG_USE, failed.error.message)
        if failed.error.code in _NOT_SO:
            refuse(Ending.NOT_SO, failed.error.message, absent if failed.error.code == "not_found" else "")
        refuse(Ending.PART_MISSING, str(failed), "Check the servers: mnemon status")
    if as_json:
        typer.echo(reply.model_dump_json(exclude_none=True))
    else:
        show(reply)
    return ending(reply)
