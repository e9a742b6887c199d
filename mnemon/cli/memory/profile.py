"""Command `mnemon profile`: show or set the data of a user."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.memory.requests import MemoryRequest
from mnemon.cli.options.option_group import expand_options
from mnemon.cli.terminal.exit_code import ExitCode, refuse
from mnemon.display_text import make_printable
from mnemon.json_text import parse_json_or_text

if TYPE_CHECKING:
    from mnemon_contracts.verbs.ask import ProfileReplyV1


@expand_options
def profile(
    request: MemoryRequest,
    assignments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE",
            help="Fields to set, such as age=34. A value that is not JSON is stored as text; null removes "
            "the field. Default: show all fields.",
        ),
    ] = None,
) -> None:
    """Show the fields of a user's data, or set some of them.

    Example: `mnemon profile name=Anna age=34 --tenant acme --user u42`
    """
    fields = dict(map(_parse_assignment, assignments or []))
    request.send(
        lambda memory: memory.set_profile(request.user, fields) if fields else memory.profile(request.user),
        _show_profile,
    )


def _parse_assignment(assignment: str) -> tuple[str, Any]:
    name, equals, value = assignment.partition("=")
    if not equals or not name:
        refuse(
            ExitCode.USAGE_ERROR, f"{assignment!r} is not of the form NAME=VALUE", "For example: city=Lisbon"
        )
    return name, parse_json_or_text(value)


def _show_profile(reply: "ProfileReplyV1") -> None:
    for name, value in reply.profile.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        typer.echo(make_printable(f"- {name}: {shown}"))
    if not reply.profile:
        typer.echo("no data")
