"""Command `mnemon settings`: show and change settings, with presets, history and rollback."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.options.target import DataOption, complete_command, open_broker, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_json, show_table
from mnemon.json_text import parse_json_or_text

if TYPE_CHECKING:
    from nats.aio.client import Client

    from mnemon_contracts.settings.document import Document
    from mnemon_infra.settings.history import Revision, SettingChange

app = typer.Typer(
    no_args_is_help=True,
    help="Show and change run-time settings. Running processes apply changes at once, except a "
    "change of the embedding model: `mnemon rebuild --reembed` makes it, with the new vectors.",
)

SettingsTenantOption = Annotated[
    str | None,
    typer.Option(help="Tenant of the settings. Default: the general settings, which apply to all tenants."),
]


def _complete_names(incomplete: str) -> list[str]:
    """Return the names of settings that begin with a text, for the completion of the shell."""
    from mnemon_contracts.settings.document import DEFAULTS

    return [name for name in DEFAULTS if name.startswith(incomplete)]


def _complete_assignments(incomplete: str) -> list[str]:
    return [f"{name}=" for name in _complete_names(incomplete)]


def _complete_presets(incomplete: str) -> list[str]:
    from mnemon_contracts.settings.presets import PRESETS

    return [name for name in PRESETS if name.startswith(incomplete)]


Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME",
        help="Settings or groups of settings, such as limits.per_user or limits.",
        autocompletion=_complete_names,
    ),
]


@app.command("get")
@perform_async
async def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Settings or groups of settings, such as limits. Default: all settings.",
            autocompletion=_complete_names,
        ),
    ] = None,
    tenant: SettingsTenantOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show the settings in force, each with its default and source; with --json, the values only.

    Example: `mnemon settings get limits --tenant acme --data ./memory`
    """
    from mnemon_contracts.settings.document import DEFAULTS, find_settings, set_value
    from mnemon_infra.settings.effective import read_effective_settings

    async with _open_settings(data) as connection:
        wanted = [setting for name in names or [] for setting in find_settings(name)] or list(DEFAULTS)
        found = await read_effective_settings(connection, tenant)
    if tenant is not None and found.problem:
        typer.echo(
            f"mnemon: the settings of tenant {tenant} are invalid and ignored: {found.problem}", err=True
        )
        change, restore = (
            complete_command(f"mnemon settings {command} --tenant {quote(tenant)}", data)
            for command in ("set NAME=VALUE", "rollback REVISION")
        )
        typer.echo(f"  Set a valid value: {change}. Or restore a former revision: {restore}", err=True)
    if as_json:
        document: Document = {}
        for name in wanted:
            document = set_value(document, name, found.values[name])
        show_json(document)
        return ExitCode.DONE
    show_table(
        ("setting", "value", "default", "from"),
        [
            (name, _format_value(found.values[name]), _format_value(DEFAULTS[name]), found.sources[name])
            for name in dict.fromkeys(wanted)
        ],
        texts=("value", "default"),
    )
    return ExitCode.DONE


@app.command("set")
@perform_async
async def set_(
    assignments: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE",
            help="Settings with their new values, such as recent_messages=20.",
            autocompletion=_complete_assignments,
        ),
    ],
    tenant: SettingsTenantOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Change settings; running processes apply them at once, except the embedding model.

    After a change of the embedding model, the command prints the further steps.

    A value is JSON, otherwise text; some settings accept `null`, which stands for no value. `unset` restores
    the default. A list is set as a whole:

    `mnemon settings set spending.prices='[{"model": "gpt-4o-mini", "input": 0.15, "output": 0.6}]'`

    Example: `mnemon settings set recent_messages=20 time_stamps.zone=Europe/Moscow`
    """
    values = dict(parse_assignment(each, data) for each in assignments)
    async with _open_settings(data) as connection:
        await _set_values(connection, values, tenant, as_json)
    return ExitCode.DONE


@app.command("preset")
@perform_async
async def preset(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Preset to apply. Default: list all presets.",
            autocompletion=_complete_presets,
        ),
    ] = None,
    tenant: SettingsTenantOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Apply a preset: settings that belong together, such as the limits and thresholds of a personal bot.

    Other settings stay as they are. `rollback` undoes the change.

    Example: `mnemon settings preset 004 --tenant acme`
    """
    from mnemon_contracts.settings.presets import find_preset

    if name is None:
        _show_presets(as_json)
        return ExitCode.DONE
    async with _open_settings(data) as connection:
        await _set_values(connection, find_preset(name).values, tenant, as_json)
    return ExitCode.DONE


@app.command("unset")
@perform_async
async def unset(
    names: Names, tenant: SettingsTenantOption = None, data: DataOption = None, as_json: JsonOption = False
) -> ExitCode:
    """Restore the defaults of settings.

    With --tenant, the general value applies again; without --tenant, the built-in value.

    Example: `mnemon settings unset limits.per_user --tenant acme`
    """
    from mnemon_contracts.settings.document import unset_value
    from mnemon_infra.settings.store import change_settings

    def edit(document: "Document") -> "Document":
        for name in names:
            document = unset_value(document, name)
        return document

    async with _open_settings(data) as connection:
        await _change_settings(connection, partial(change_settings, connection, edit, tenant), as_json)
    return ExitCode.DONE


@app.command("history")
@perform_async
async def history(
    tenant: SettingsTenantOption = None, data: DataOption = None, as_json: JsonOption = False
) -> ExitCode:
    """List the last 64 revisions of the general settings or of a tenant's settings, oldest first.

    Each revision is shown with its changes, its time and the program that made it.

    Example: `mnemon settings history --data ./memory`
    """
    from mnemon_infra.settings.history import read_history

    async with _open_settings(data) as connection:
        revisions = await read_history(connection, tenant)
    if as_json:
        show_json([_revision_to_json(revision) for revision in revisions])
    elif not revisions:
        effect = "the general settings apply to this tenant" if tenant else "all settings have their defaults"
        typer.echo(f"no revisions: {effect}")
    else:
        show_table(
            ("revision", "at (UTC)", "by", "changes"),
            [
                (each.revision, f"{each.at:%Y-%m-%d %H:%M:%S}", each.by or "", _describe_revision(each))
                for each in revisions
            ],
            texts=("by", "changes"),
        )
    return ExitCode.DONE


@app.command("rollback")
@perform_async
async def rollback(
    revision: Annotated[
        int,
        typer.Argument(
            metavar="REVISION", min=1, help="Number of the revision, as `mnemon settings history` shows it."
        ),
    ],
    tenant: SettingsTenantOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Restore the settings of a former revision, as a new revision.

    Exits with code 1 if there is no such revision.

    Example: `mnemon settings rollback 7 --data ./memory`
    """
    from mnemon_infra.settings.history import NoSuchRevision, roll_back_settings

    try:
        async with _open_settings(data) as connection:
            roll_back = partial(roll_back_settings, connection, revision, tenant)
            await _change_settings(connection, roll_back, as_json)
    except NoSuchRevision as error:
        option = "" if tenant is None else f" --tenant {quote(tenant)}"
        listing = complete_command(f"mnemon settings history{option}", data)
        refuse(ExitCode.NEGATIVE_RESULT, str(error), f"List the revisions: {listing}")
    return ExitCode.DONE


@asynccontextmanager
async def _open_settings(data: Path | None) -> AsyncIterator["Client"]:
    """Connect to the NATS servers; end the command if a setting or a tenant in the block is invalid."""
    from mnemon_contracts.base import InvalidBody
    from mnemon_contracts.subjects import InvalidId

    try:
        async with open_broker(require_deployment(data, "broker"), "mnemon-settings") as connection:
            yield connection
    except InvalidBody as error:
        listing = complete_command("mnemon settings get", data)
        refuse(ExitCode.USAGE_ERROR, str(error), f"List the settings: {listing}")
    except InvalidId as error:
        refuse(ExitCode.USAGE_ERROR, str(error))


async def _set_values(
    connection: "Client", values: Mapping[str, Any], tenant: str | None, as_json: bool
) -> None:
    from mnemon_contracts.settings.document import set_value
    from mnemon_infra.settings.store import change_settings

    def edit(document: "Document") -> "Document":
        for name, value in values.items():
            document = set_value(document, name, value)
        return document

    await _change_settings(connection, partial(change_settings, connection, edit, tenant), as_json)


def _show_presets(as_json: bool) -> None:
    from mnemon_contracts.settings.presets import PRESETS

    if as_json:
        shown = {name: {"title": each.title, "values": dict(each.values)} for name, each in PRESETS.items()}
        show_json(shown)
        return
    show_table(
        ("preset", "description", "sets"),
        [
            (
                name,
                each.title,
                "\n".join(f"{setting}={_format_value(value)}" for setting, value in each.values.items()),
            )
            for name, each in PRESETS.items()
        ],
        texts=("description",),
    )


async def _change_settings(
    connection: "Client", change_settings: Callable[[], Awaitable[int | None]], as_json: bool
) -> None:
    from mnemon.operations.embedding_change import apply_change

    revision, steps = await apply_change(connection, change_settings)
    if as_json:
        show_json({"revision": revision})
    else:
        typer.echo("nothing was changed" if revision is None else f"in force as revision {revision}")
    if steps:
        typer.echo(f"mnemon: {steps}", err=True)


def parse_assignment(assignment: str, data: Path | None) -> tuple[str, Any]:
    """Parse NAME=VALUE; end the command if the text has another form.

    `data` is the folder of the stack, for the next step; None if environment variables name the servers.
    """
    name, separator, value = assignment.partition("=")
    if not separator:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{assignment!r} is not of the form NAME=VALUE",
            "For example: recent_messages=20. List the settings: "
            f"{complete_command('mnemon settings get', data)}",
        )
    if not value:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{name} has no value after the equals sign",
            f"To restore the default: {complete_command(f'mnemon settings unset {name}', data)}",
        )
    return name, parse_json_or_text(value)


def _describe_revision(revision: "Revision") -> str:
    lines = [
        f"{change.setting}: {_format_side(change.before)} → {_format_side(change.after)}"
        for change in revision.changes
    ]
    if revision.deleted:
        lines.append("deleted")
    if revision.problem:
        lines.append(f"not valid: {revision.problem}")
    return "\n".join(lines) or "nothing"


def _revision_to_json(revision: "Revision") -> dict[str, Any]:
    shown = {
        "revision": revision.revision,
        "at": revision.at.isoformat(),
        "by": revision.by,
        "changes": [_change_to_json(change) for change in revision.changes],
        "deleted": revision.deleted,
    }
    return shown | ({"problem": revision.problem} if revision.problem else {})


def _change_to_json(change: "SettingChange") -> dict[str, Any]:
    """Return a change as JSON; `before` or `after` is absent, not `null`, if the setting was unset."""
    sides = (("before", change.before), ("after", change.after))
    return {"setting": change.setting} | {side: value for side, values in sides for value in values}


def _format_side(value: tuple[Any, ...]) -> str:
    return _format_value(value[0]) if value else "not set"


def _format_value(value: Any) -> str:
    if isinstance(value, list) and len(value) > 1:
        # Put each item on its own line, such as prices.
        return "[" + ",\n ".join(_format_value(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)
