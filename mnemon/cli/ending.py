"""How a command ends: its exit code, and what it says when something is wrong."""

import asyncio
from collections.abc import Coroutine
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from infra.embedded.folder import FolderInUse


class Ending(IntEnum):
    """The exit codes, which other people's scripts rely on."""

    DONE = 0
    NOT_SO = 1
    WRONG_USE = 2
    PART_MISSING = 3


def refuse(ending: Ending, problem: str, next_step: str = "") -> NoReturn:
    """Say what is wrong and what to do about it, and end."""
    typer.echo(f"mnemon: {problem}", err=True)
    if next_step:
        typer.echo(f"  {next_step}", err=True)
    raise typer.Exit(ending)


def refuse_folder(error: "FolderInUse") -> NoReturn:
    """Say who has the folder, and end."""
    stop = f"Stop it (kill {error.pid})" if error.pid else "Stop it"
    refuse(Ending.WRONG_USE, str(error), f"{stop}, or choose another folder: mnemon up --data DIR")


def perform(command: Coroutine[Any, Any, Ending]) -> NoReturn:
    """Run a command to its end. What a person can mend is told in words, the rest is a traceback."""
    from infra.cancelling import heed_cancellations

    heed_cancellations()
    try:
        ending = asyncio.run(command)
    except asyncio.CancelledError:
        ending = Ending.DONE  # asked to end before it was up, it has ended
    except (typer.Exit, ModuleNotFoundError):
        raise
    except Exception as error:
        _tell(error)
        raise
    raise typer.Exit(ending)


def _tell(error: Exception) -> None:
    """Refuse in words. What is imported for that takes a second: a command that ends well goes without."""
    import nats.errors
    import nats.js.errors

    from infra.broker.connect import BrokerUnreachable
    from infra.broker.presence import StreamsMissing
    from infra.broker.topology import TooFewServers
    from infra.database.engine import DatabaseNotConfigured, DatabaseUnavailable
    from infra.database.migrate import SchemaTooNew
    from infra.embedded.account import NoAccount
    from infra.embedded.folder import FolderInUse
    from infra.embedded.log_key import LogKeyRefused
    from infra.embedded.process import ServerFailed
    from infra.models.embedding import EmbeddingNotConfigured, EmbeddingUnavailable
    from infra.same_log import LogLost
    from infra.settings.bucket import SettingsNotProvisioned
    from infra.telemetry.endpoint import PortTaken
    from infra.vectors.port import VectorsInUse, VectorsNotConfigured, VectorsOutdated, VectorsUnavailable

    match error:
        case FolderInUse():
            refuse_folder(error)
        case LogKeyRefused() | PortTaken():
            refuse(Ending.WRONG_USE, str(error))
        case SettingsNotProvisioned() | TooFewServers():
            refuse(Ending.PART_MISSING, str(error))
        case BrokerUnreachable() | DatabaseUnavailable() | DatabaseNotConfigured():
            refuse(Ending.PART_MISSING, str(error))
        case ServerFailed() | NoAccount() | SchemaTooNew() | StreamsMissing() | LogLost():
            refuse(Ending.PART_MISSING, str(error))
        case VectorsNotConfigured() | VectorsInUse() | VectorsOutdated() | VectorsUnavailable():
            refuse(Ending.PART_MISSING, str(error))
        case EmbeddingNotConfigured() | EmbeddingUnavailable():
            refuse(Ending.PART_MISSING, str(error))
        case nats.js.errors.ServiceUnavailableError():
            next_step = "Start it with -js, or use `mnemon up`."
            refuse(Ending.PART_MISSING, "the NATS server has no JetStream", next_step)
        case nats.js.errors.APIError():
            refuse(Ending.NOT_SO, f"the NATS server refuses: {error.description}")
        case nats.errors.Error():
            refuse(Ending.PART_MISSING, f"the NATS server does not answer: {error}")
