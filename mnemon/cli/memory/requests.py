"""Shared parts of commands that send requests about the memory of one user, as a bot does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from mnemon.cli.options.moment import parse_moment, parse_time
from mnemon.cli.options.target import (
    DataOption,
    complete_command,
    complete_next_step,
    refuse_connection,
    require_deployment,
)
from mnemon.cli.terminal.exit_code import ExitCode, perform_command, refuse
from mnemon.cli.terminal.output import JsonOption

if TYPE_CHECKING:
    from mnemon_contracts.verbs.ask import ErrorCode, Reply
    from mnemon_infra.config import Deployment
    from mnemon_producers.client import MemoryClient

CommandReply = TypeVar("CommandReply", bound="Reply")

TenantOption = Annotated[str, typer.Option(help="Tenant of the user.")]
UserOption = Annotated[str, typer.Option(help="User whose memory the command uses.")]
MinSeqOption = Annotated[
    int | None,
    typer.Option(
        "--min-seq",
        min=0,
        help="Wait until memory reflects the log up to this position, for at most the time in the setting "
        "`wait_for_log_ms`. Default: do not wait.",
    ),
]
PrecedingOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="Message before the query. Repeat the option for several, oldest first, at most four. A query "
        "that depends on them, such as `and when was that?`, is searched with their words too. Default: "
        "none.",
    ),
]
NowOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time to which words of the query such as `yesterday` are relative, UTC unless it has an "
        "offset. Default: the present, or the time of --as-of.",
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="SEQ|TIME",
        help="Log position or time as of which to answer, from a snapshot that `mnemon "
        "rebuild --until` made. Default: now.",
    ),
]
ExpiresOption = Annotated[
    datetime | None,
    typer.Option(
        "--expires",
        help="Time from which the fact is no longer shown, in UTC, such as 2026-12-31 or "
        "2026-12-31T18:00:00. Default: for a new fact in the tier working, the end that its text names, else "
        "the setting `limits.working_days`; for other new facts, never; for a change, unchanged unless a new "
        "text or tier changes the time.",
    ),
]
KindOption = Annotated[
    str | None,
    typer.Option(
        help="Kind of the fact: user_fact, preference, event, conversation_insight or conversation_summary. "
        "Default: for a new fact, derived from its text; for a change, unchanged."
    ),
]
TierOption = Annotated[
    str | None,
    typer.Option(
        help="Tier of the fact: profile, working or archive. Default: for a new fact, working with "
        "--expires, otherwise derived from its kind and text; for a change, unchanged."
    ),
]
ImportanceOption = Annotated[
    str | None,
    typer.Option(
        help="Importance of the fact: high, normal, low, or 1 to 10. Default: for a new fact, derived from "
        "its text; for a change, unchanged."
    ),
]

_WRONG_USE: tuple["ErrorCode", ...] = ("bad_request", "unknown_verb", "not_implemented")
_NEGATIVE_CODES: tuple["ErrorCode", ...] = ("not_found", "refused")


def parse_as_of(given: str | None) -> int | datetime | None:
    """Parse the value of an `AsOfOption`, which may be None.

    End the command with code 2 if the value is invalid or in the future.
    """
    return None if given is None else parse_moment("--as-of", given)


def parse_now(given: str | None) -> datetime | None:
    """Parse the value of a `NowOption`, which may be None.

    End the command with code 2 if the value is not a time.
    """
    return None if given is None else parse_time("--now", given)


def parse_importance(given: str | None) -> int | str | None:
    """Parse an importance: return a number for digits, else the value as given."""
    return int(given) if given is not None and given.isdecimal() else given


@dataclass(frozen=True)
class MemoryRequest:
    """Options of a command that sends a request about the memory of one user."""

    tenant: TenantOption
    user: UserOption
    data: DataOption = None
    as_json: JsonOption = False

    @property
    def options(self) -> str:
        """Options for a suggested command: the tenant, the user and, if it was given, `--data`."""
        return complete_command(f"--tenant {quote(self.tenant)} --user {quote(self.user)}", self.data)

    def send(
        self,
        send: Callable[["MemoryClient"], Awaitable[CommandReply]],
        show: Callable[[CommandReply], None],
        *,
        conclude: Callable[[CommandReply], ExitCode] = lambda _: ExitCode.DONE,
        list_command: str = "",
        alternative: str = "",
    ) -> NoReturn:
        """Send a request, show the reply as text or as JSON, and end the command.

        Args:
            send: function that sends the request.
            show: function that shows the reply as text.
            conclude: function that returns the exit code for a reply; it may print to standard error.
            list_command: command to name if nothing is found, such as `tasks list`.
            alternative: another next step if nothing is found, as a sentence.
        """
        listing = f"List the ids: mnemon {list_command} {self.options}" if list_command else ""
        next_step = ". ".join(filter(None, (listing, alternative)))
        deployment = require_deployment(self.data, "broker")
        perform_command(_send_request(deployment, self, send, show, conclude, next_step))


@asynccontextmanager
async def connect_memory(
    deployment: "Deployment", tenant: str, data: Path | None = None, **options: Any
) -> AsyncIterator["MemoryClient"]:
    """Connect to a tenant's memory until the end of the block; `data` is the folder of its stack, if given.

    `options` are further arguments of `MemoryClient.connect`.

    End the command if no server answers or accepts the login, or if an id in the block is invalid.
    """
    from mnemon_contracts.subjects import InvalidId
    from mnemon_producers.client import MemoryClient
    from mnemon_producers.errors import NotConnected

    try:
        async with MemoryClient.connect(str(deployment.nats_url), tenant=tenant, **options) as memory:
            yield memory
    except InvalidId as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
    except NotConnected as error:
        refuse_connection(error, data)


async def _send_request(
    deployment: "Deployment",
    request: MemoryRequest,
    send: Callable[["MemoryClient"], Awaitable[CommandReply]],
    show: Callable[[CommandReply], None],
    conclude: Callable[[CommandReply], ExitCode],
    next_step: str,
) -> ExitCode:
    from mnemon_contracts.base import InvalidBody
    from mnemon_producers.errors import AskFailed

    try:
        async with connect_memory(deployment, request.tenant, request.data) as memory:
            reply = await send(memory)
    except InvalidBody as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
    except AskFailed as failed:
        if failed.error.code in _WRONG_USE:
            refuse(ExitCode.USAGE_ERROR, failed.error.message)
        if failed.error.code in _NEGATIVE_CODES:
            refuse(
                ExitCode.NEGATIVE_RESULT,
                failed.error.message,
                next_step if failed.error.code == "not_found" else "",
            )
        refuse(ExitCode.UNAVAILABLE, complete_next_step(str(failed), request.data))
    if request.as_json:
        typer.echo(reply.model_dump_json(exclude_none=True))
    else:
        show(reply)
    return conclude(reply)
