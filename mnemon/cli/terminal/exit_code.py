"""Exit codes of commands, and their error messages."""

import asyncio
from collections.abc import Coroutine, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer

if TYPE_CHECKING:
    from mnemon_infra.process.data_folder import FolderInUse


class Ending(IntEnum):
    """Exit codes of all commands. Scripts rely on them."""

    DONE = 0
    NOT_SO = 1
    WRONG_USE = 2
    PART_MISSING = 3


ENDINGS: Final[Mapping[str, Ending]] = {
    "mnemon_infra.broker.connection.BrokerUnreachable": Ending.PART_MISSING,
    "mnemon.operations.imports.reassignment.NotReassigned": Ending.PART_MISSING,
    "mnemon_infra.broker.provisioning.presence.StreamsMissing": Ending.PART_MISSING,
    "mnemon_infra.broker.provisioning.topology.TooFewServers": Ending.PART_MISSING,
    "mnemon_infra.database.engine.DatabaseNotConfigured": Ending.PART_MISSING,
    "mnemon_infra.database.engine.DatabaseUnavailable": Ending.PART_MISSING,
    "mnemon_infra.database.migration.SchemaTooNew": Ending.PART_MISSING,
    "mnemon_infra.embedded.account.NoAccount": Ending.PART_MISSING,
    "mnemon_infra.embedded.log_key.LogKeyRefused": Ending.WRONG_USE,
    "mnemon_infra.embedded.process.ServerFailed": Ending.PART_MISSING,
    "mnemon_infra.models.embedding.EmbeddingNotConfigured": Ending.PART_MISSING,
    "mnemon_infra.models.embedding.EmbeddingUnavailable": Ending.PART_MISSING,
    "mnemon_infra.health.consistency.LogLost": Ending.PART_MISSING,
    "mnemon_infra.settings.bucket.SettingsNotProvisioned": Ending.PART_MISSING,
    "mnemon_infra.telemetry.endpoint.MetricsPortTaken": Ending.WRONG_USE,
    "mnemon_infra.vectors.port.VectorsInUse": Ending.PART_MISSING,
    "mnemon_infra.vectors.port.VectorsNotConfigured": Ending.PART_MISSING,
    "mnemon_infra.vectors.port.VectorsOutdated": Ending.PART_MISSING,
    "mnemon_infra.vectors.port.VectorsUnavailable": Ending.PART_MISSING,
}
"""Errors that end a command, by name: to import all of their classes takes half a second each time."""


def refuse(ending: Ending, problem: str, next_step: str = "") -> NoReturn:
    """Print a problem and the next step on standard error, and end the command."""
    typer.echo(f"mnemon: {problem}", err=True)
    if next_step:
        typer.echo(f"  {next_step}", err=True)
    raise typer.Exit(ending)


def refuse_folder(error: "FolderInUse") -> NoReturn:
    """Print which process uses the folder, and end the command."""
    stop = f"Stop it (kill {error.pid})" if error.pid else "Stop it"
    refuse(Ending.WRONG_USE, str(error), f"{stop}, or choose another folder: mnemon up --data DIR")


def perform_command(command: Coroutine[Any, Any, Ending]) -> NoReturn:
    """Run a command and end with its exit code. Known errors become messages, all others a traceback."""
    from mnemon_infra.process.cancellation import patch_wait_for
    from mnemon_infra.process.fault import take_fault

    patch_wait_for()
    take_fault()  # discard the fault of an earlier command in this process
    try:
        ending = asyncio.run(command)
    except asyncio.CancelledError:
        ending = Ending.DONE  # a signal came during the start
    except (typer.Exit, ModuleNotFoundError):
        raise
    except Exception as error:
        _refuse_known(error)
        raise
    if problem := take_fault():
        refuse(Ending.PART_MISSING, problem)
    raise typer.Exit(ending)


def _refuse_known(error: Exception) -> None:
    """End the command with a message if the error is a known one."""
    import nats.errors
    import nats.js.errors

    from mnemon_infra.process.data_folder import FolderInUse

    for each in type(error).__mro__:
        if ending := ENDINGS.get(f"{each.__module__}.{each.__qualname__}"):
            refuse(ending, str(error))
    match error:
        case FolderInUse():
            refuse_folder(error)
        case nats.js.errors.ServiceUnavailableError():
            next_step = "Start the server with -js, or use `mnemon up`."
            refuse(Ending.PART_MISSING, "JetStream is off on the NATS server", next_step)
        case nats.js.errors.APIError():
            refuse(Ending.NOT_SO, f"the NATS server refused the request: {error.description}")
        case nats.errors.Error():
            refuse(Ending.PART_MISSING, f"the NATS server does not answer: {error}")
