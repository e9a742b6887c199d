"""Exit codes of commands, and their error messages."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from enum import IntEnum
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer

from mnemon.cli.terminal.signals import list_ending_signals

if TYPE_CHECKING:
    from mnemon_infra.process.data_folder import FolderInUse


class ExitCode(IntEnum):
    """Exit codes of all commands. Scripts rely on them."""

    DONE = 0
    NEGATIVE_RESULT = 1
    USAGE_ERROR = 2
    UNAVAILABLE = 3


ENDINGS: Final[Mapping[str, ExitCode]] = {
    "mnemon_infra.broker.connection.BrokerUnreachable": ExitCode.UNAVAILABLE,
    "mnemon.operations.backup.encryption.KeyUnusable": ExitCode.USAGE_ERROR,
    "mnemon.operations.backup.manifest.BackupUnusable": ExitCode.UNAVAILABLE,
    "mnemon.operations.imports.reassignment.NotReassigned": ExitCode.UNAVAILABLE,
    "mnemon.operations.restore.logins.ServerOpen": ExitCode.USAGE_ERROR,
    "mnemon.operations.restore.replay.DatabaseNotEmpty": ExitCode.USAGE_ERROR,
    "mnemon.operations.restore.run.RestoreDiffers": ExitCode.UNAVAILABLE,
    "mnemon.operations.tenant_move.deployment.MoveDiffers": ExitCode.NEGATIVE_RESULT,
    "mnemon.operations.tenant_move.deployment.MoveRefused": ExitCode.USAGE_ERROR,
    "mnemon_infra.broker.provisioning.authorization.ForeignLoginFile": ExitCode.USAGE_ERROR,
    "mnemon_infra.broker.provisioning.restoration.ForeignEvent": ExitCode.UNAVAILABLE,
    "mnemon_infra.broker.provisioning.restoration.LogNotEmpty": ExitCode.USAGE_ERROR,
    "mnemon_infra.broker.provisioning.restoration.MessageTooLarge": ExitCode.UNAVAILABLE,
    "mnemon_infra.broker.provisioning.presence.StreamsMissing": ExitCode.UNAVAILABLE,
    "mnemon_infra.broker.provisioning.topology.TooFewServers": ExitCode.UNAVAILABLE,
    "mnemon_infra.broker.streams.log_format.LogTooNew": ExitCode.UNAVAILABLE,
    "mnemon_infra.broker.streams.restored_log.RestoreUnfinished": ExitCode.UNAVAILABLE,
    "mnemon_infra.database.engine.DatabaseNotConfigured": ExitCode.UNAVAILABLE,
    "mnemon_infra.database.engine.DatabaseUnavailable": ExitCode.UNAVAILABLE,
    "mnemon_infra.database.migration.SchemaTooNew": ExitCode.UNAVAILABLE,
    "mnemon_infra.embedded.account.NoAccount": ExitCode.UNAVAILABLE,
    "mnemon_infra.embedded.log_key.LogKeyRefused": ExitCode.USAGE_ERROR,
    "mnemon_infra.embedded.process.ServerFailed": ExitCode.UNAVAILABLE,
    "mnemon_infra.models.embedding.EmbeddingNotConfigured": ExitCode.UNAVAILABLE,
    "mnemon_infra.models.embedding.EmbeddingUnavailable": ExitCode.UNAVAILABLE,
    "mnemon_infra.health.consistency.LogLost": ExitCode.UNAVAILABLE,
    "mnemon_infra.process.data_folder.FolderTooNew": ExitCode.UNAVAILABLE,
    "mnemon_infra.process.data_folder.FolderUnusable": ExitCode.USAGE_ERROR,
    "mnemon_infra.settings.bucket.SettingsNotProvisioned": ExitCode.UNAVAILABLE,
    "mnemon_infra.settings.residence.ResidenceInvalid": ExitCode.UNAVAILABLE,
    "mnemon_infra.settings.store.SettingsContended": ExitCode.NEGATIVE_RESULT,
    "mnemon_infra.storage.object_store.StoreUnavailable": ExitCode.UNAVAILABLE,
    "mnemon_infra.telemetry.endpoint.MetricsPortTaken": ExitCode.USAGE_ERROR,
    "mnemon_infra.vectors.port.VectorsInUse": ExitCode.UNAVAILABLE,
    "mnemon_infra.vectors.port.VectorsNotConfigured": ExitCode.UNAVAILABLE,
    "mnemon_infra.vectors.port.VectorsOutdated": ExitCode.UNAVAILABLE,
    "mnemon_infra.vectors.port.VectorsUnavailable": ExitCode.UNAVAILABLE,
}
"""Exit codes of errors, by module and class name: to import all the classes would take half a second."""


def refuse(ending: ExitCode, problem: str, next_step: str = "") -> NoReturn:
    """Print a problem and the next step on standard error, and end the command."""
    typer.echo(f"mnemon: {problem}", err=True)
    if next_step:
        typer.echo(f"  {next_step}", err=True)
    raise typer.Exit(ending)


def refuse_file(
    path: object,
    action: str,
    error: OSError,
    next_step: str = "Check the path and the permissions of the file",
) -> NoReturn:
    """Print that a file cannot be used, and end the command.

    Args:
        path: the file or folder.
        action: participle for the message: `read`, `written`, or `read or written`.
        error: the error of the file system, or of a server in the same block.
        next_step: what the user can do.

    Raises:
        OSError: `error`, if it is of a server: `ConnectionError`, or nats-py's `TimeoutError`.
    """
    if isinstance(error, ConnectionError | TimeoutError):
        raise error
    refuse(ExitCode.USAGE_ERROR, f"{path} cannot be {action}: {error.strerror}", next_step)


def refuse_folder(error: "FolderInUse", alternative: str = "") -> NoReturn:
    """Print which process uses the folder, how to stop the process, and `alternative`; end the command."""
    stop = f"Stop it (kill {error.pid})" if error.pid else "Stop it"
    refuse(ExitCode.USAGE_ERROR, str(error), f"{stop}{alternative}")


def perform_async(command: Callable[..., Coroutine[Any, Any, ExitCode]]) -> Callable[..., None]:
    """Return a command that awaits `command` and ends with its exit code; see `perform_command`."""

    @wraps(command)
    def run(**given: Any) -> None:
        perform_command(command(**given))

    return run


def perform_command(command: Coroutine[Any, Any, ExitCode]) -> NoReturn:
    """Run a command and end with its exit code.

    An error of `ENDINGS`, NATS or a folder in use is printed as a message, any other error as a traceback;
    `mnemon.__main__` explains a missing module, and a standard output that cannot be written. A fault that
    `end_process` reported ends the command with code 3, also if an error follows from it. SIGTERM and the end
    of the terminal cancel the command, so that it stops the servers that it started. The exit code is then
    128 plus the number of the signal. A command that uses `StopSignals` handles signals itself. If
    `StopSignals` cancels the command, the exit code is 0, unless the command catches the cancellation.
    """
    from mnemon_infra.process.cancellation import patch_wait_for
    from mnemon_infra.process.fault import take_fault

    patch_wait_for()
    take_fault()  # discard the fault of an earlier command in this process
    received: list[int] = []
    try:
        ending = asyncio.run(_cancel_on_signal(command, received))
    except asyncio.CancelledError:
        if received:
            raise typer.Exit(128 + received[0]) from None
        ending = ExitCode.DONE  # `StopSignals` cancelled the command
    except (typer.Exit, ModuleNotFoundError):
        raise
    except Exception as error:
        if problem := take_fault():  # errors of the shutdown follow from the fault
            refuse(ExitCode.UNAVAILABLE, problem)
        _refuse_known(error)
        raise
    if problem := take_fault():
        refuse(ExitCode.UNAVAILABLE, problem)
    raise typer.Exit(ending)


async def _cancel_on_signal(command: Coroutine[Any, Any, ExitCode], received: list[int]) -> ExitCode:
    """Await a command; SIGTERM and SIGHUP cancel it, and are added to `received`.

    `asyncio.run` cancels it for SIGINT.
    """
    task = asyncio.current_task()
    assert task is not None

    def cancel(number: int) -> None:
        received.append(number)
        task.cancel()

    if threading.current_thread() is threading.main_thread():
        for number in list_ending_signals():
            asyncio.get_running_loop().add_signal_handler(number, cancel, number)
    return await command


def _refuse_known(error: Exception) -> None:
    """End the command for an error of `ENDINGS`, NATS or a folder in use; return for any other error."""
    import nats.errors
    import nats.js.errors

    from mnemon_infra.process.data_folder import FolderInUse

    for each in type(error).__mro__:
        if ending := ENDINGS.get(f"{each.__module__}.{each.__qualname__}"):
            refuse(ending, str(error))
    match error:
        case FolderInUse():
            refuse_folder(error)
        case nats.js.errors.APIError(err_code=10_023 | 10_047):
            refuse(
                ExitCode.UNAVAILABLE,
                f"the NATS server has no room: {error.description}",
                "Free space on its disk, or raise the limit of its storage (`max_file_store`, or `max_file` "
                "of the account), then run the command again",
            )
        case nats.js.errors.ServiceUnavailableError(err_code=None | 10_039 | 10_076):
            next_step = "Start the server with -js, or use `mnemon up`"
            refuse(ExitCode.UNAVAILABLE, "JetStream is off on the NATS server", next_step)
        case nats.js.errors.APIError():
            refuse(
                ExitCode.NEGATIVE_RESULT,
                f"the NATS server refused the request: {error.description}",
                "Correct the cause at the server, then run the command again",
            )
        case nats.errors.Error():
            refuse(
                ExitCode.UNAVAILABLE,
                f"the NATS server does not answer: {error}",
                "Check that the server runs, then run the command again",
            )
