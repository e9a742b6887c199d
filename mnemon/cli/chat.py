"""`mnemon chat`."""

import asyncio
import getpass
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.asking import connected
from mnemon.cli.ending import Ending, perform, refuse
from mnemon.cli.stopping import Stop
from mnemon.cli.target import DEFAULT_DATA, configured, target

if TYPE_CHECKING:
    from infra.config import Deployment
    from infra.models.language.openai import OpenAIModel
    from mnemon.chat.screen import Screen


def chat(
    tenant: Annotated[str, typer.Option(help="The tenant that the user belongs to.")] = "chat",
    user: Annotated[str | None, typer.Option(help="Who talks; without it: the name of this account.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help=f"The folder of a stack, started if it does not run; without it: the configured servers, "
            f"or else {DEFAULT_DATA}.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            envvar="MNEMON_MODEL",
            help="Who answers: a model of the server at MNEMON_MODEL_URL, or of OpenAI's. `offline`, or "
            "nothing configured: nobody; you see what one would be given.",
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a context at most; without it: as the settings say.")
    ] = None,
) -> None:
    """Talk to a bot that has memory, and look into the memory: /help shows how.

    Where no stack runs in the folder, one is started for as long as you talk; what is said stays. In a pipe
    each line is something said, or a command; it ends with 1 if something could not be done.

    Example: `MNEMON_MODEL_URL=http://localhost:11434/v1 MNEMON_MODEL=qwen3:8b mnemon chat --data ./memory`
    """
    perform(_chat(tenant, user or getpass.getuser(), data, model, budget))


async def _chat(tenant: str, user: str, data: Path | None, model: str | None, budget: int | None) -> Ending:
    from rich.console import Console

    from mnemon.chat.reading import piped, typed
    from mnemon.chat.screen import Screen
    from mnemon.chat.talk import EXIT, Talk

    screen = Screen(Console(highlight=False))
    async with AsyncExitStack() as ends:
        ends.enter_context(Stop())  # also where the terminal is closed, what was started here is ended
        deployment = await ends.enter_async_context(_servers(data, screen))
        answering = await ends.enter_async_context(_model(deployment, model))
        memory = await ends.enter_async_context(connected(deployment, tenant))
        talk = Talk(memory, user, answering, screen, budget)
        if screen.is_terminal and sys.stdin.isatty():
            who = f"{answering.model} answers" if answering else "nobody answers: MNEMON_MODEL_URL is not set"
            screen.note(f"You are {user} of {tenant}; {who}. /help shows what there is, Ctrl-D ends.")
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, talk.interrupt)
            await talk.go_on(typed([*talk.commands, EXIT], lambda: talk.standing))
            return Ending.DONE
        await talk.go_on(piped())
        return Ending.NOT_SO if talk.failed else Ending.DONE


@asynccontextmanager
async def _servers(data: Path | None, screen: "Screen") -> AsyncIterator["Deployment"]:
    """What is configured, or what runs in a folder; started where nothing does."""
    from infra.embedded.folder import Endpoints
    from infra.telemetry.logging import configure_logging
    from mnemon.chat.starting import LOG, NotStarted, new_log, started

    configure_logging()
    if data is None and configured().nats_url:
        yield target(None, "broker")
        return
    folder = data or DEFAULT_DATA
    if Endpoints.read(folder) is not None:
        yield target(folder, "broker")
        return
    screen.note(f"Starting a stack in {folder}: it ends when you leave, and what is said stays.")
    try:
        log = new_log(folder)
    except OSError as error:
        refuse(Ending.WRONG_USE, f"{folder}: {error.strerror}", "Choose another: --data DIR")
    try:
        async with AsyncExitStack() as ends:
            with screen.busy("nats-server, PostgreSQL and the consumers"):
                await ends.enter_async_context(started(folder, log))
            yield target(folder, "broker")
    except NotStarted as error:
        refuse(Ending.PART_MISSING, f"no stack starts in {folder}: {error}", f"See {folder / LOG}")


@asynccontextmanager
async def _model(deployment: "Deployment", name: str | None) -> AsyncIterator["OpenAIModel | None"]:
    """Who answers; None where nobody is configured."""
    if name == "offline" or not (deployment.model_url or deployment.model_api_key):
        yield None
        return
    from infra.models.language.openai import open_openai
    from infra.models.language.port import ModelNotConfigured

    try:
        async with open_openai(name, deployment) as model:
            yield model
    except ModelNotConfigured as error:
        refuse(Ending.WRONG_USE, str(error))
