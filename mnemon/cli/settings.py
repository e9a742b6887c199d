"""`mnemon settings`."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.ending import Ending, perform, refuse
from mnemon.cli.output import JsonOption, show_table
from mnemon.cli.target import DataOption, target

if TYPE_CHECKING:
    from infra.config import Deployment

app = typer.Typer(no_args_is_help=True, help="See and change what every process heeds while it runs.")


@app.command("get")
def get(data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show the settings in force.

    Example: `mnemon settings get --data ./memory`
    """
    perform(_get(target(data, "broker"), as_json))


@app.command("set")
def set_(
    assignments: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="Settings and values.")],
    data: DataOption = None,
) -> None:
    """Change settings; every process takes them over at once.

    Example: `mnemon settings set recent_messages=20 time_stamps.zone=Europe/Moscow`
    """
    perform(_set(target(data, "broker"), assignments))


async def _get(deployment: "Deployment", as_json: bool) -> Ending:
    from infra.broker.connect import connect
    from infra.settings.store import read

    connection = await connect(str(deployment.nats_url), name="mnemon-settings")
    try:
        settings = (await read(connection)).model_dump(mode="json")
    finally:
        await connection.close()
    if as_json:
        typer.echo(json.dumps(settings, ensure_ascii=False))
    else:
        show_table(("setting", "value"), _flat(settings))
    return Ending.DONE


async def _set(deployment: "Deployment", assignments: list[str]) -> Ending:
    from contracts.base import InvalidBody
    from contracts.settings import SettingsV1
    from infra.broker.connect import connect
    from infra.settings.store import read, write

    connection = await connect(str(deployment.nats_url), name="mnemon-settings")
    try:
        changed = (await read(connection)).model_dump(mode="json")
        for assignment in assignments:
            _assign(changed, assignment)
        revision = await write(connection, SettingsV1.strictly(**changed))
    except InvalidBody as error:
        refuse(Ending.WRONG_USE, str(error), "See what there is: mnemon settings get")
    finally:
        await connection.close()
    typer.echo(f"in force as revision {revision}")
    return Ending.DONE


def _assign(settings: dict[str, Any], assignment: str) -> None:
    name, separator, value = assignment.partition("=")
    if not separator:
        refuse(Ending.WRONG_USE, f"{assignment!r} is not of the form NAME=VALUE")
    *groups, last = name.split(".")
    for group in groups:
        settings = settings.setdefault(group, {})
        if not isinstance(settings, dict):
            refuse(Ending.WRONG_USE, f"{group} is one setting, and has no {last}")
    try:
        settings[last] = json.loads(value)
    except ValueError:
        settings[last] = value  # a text needs no quotes


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{name}.")
        else:
            rows.append((prefix + name, json.dumps(value, ensure_ascii=False)))
    return rows
