"""Command `mnemon chat`: talk to a bot with memory in the terminal."""

import asyncio
import getpass
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.memory.requests import connect_memory
from mnemon.cli.stack.temporary_stack import StartedDataOption, open_servers
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.signals import StopSignals

if TYPE_CHECKING:
    from mnemon_infra.config import Deployment
    from mnemon_infra.models.language.openai.model import OpenAIModel


@perform_async
async def chat(
    tenant: Annotated[str, typer.Option(help="Tenant of the user.")] = "chat",
    user: Annotated[
        str | None, typer.Option(help="User who talks. Default: the name of the operating system account.")
    ] = None,
    data: StartedDataOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            envvar="MNEMON_MODEL",
            help="Model that answers: a model of the server at MNEMON_MODEL_URL, or of OpenAI. Default: "
            "gpt-4.1-mini. With `offline`, or if none of MNEMON_MODEL_URL, MNEMON_MODEL_API_KEY and "
            "OPENAI_API_KEY is set, the chat shows the context that a model would get.",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum tokens of a context. Default: the setting `context.budget`."),
    ] = None,
) -> ExitCode:
    """Talk to a bot that has memory, and inspect the memory with commands: see /help.

    If no stack runs in the folder, the command starts one for as long as you talk; messages are kept. In a
    pipe, each line is a message or a command, and `mnemon chat` exits with code 1 if one of them failed.

    Example: `MNEMON_MODEL_URL=http://localhost:11434/v1 MNEMON_MODEL=qwen3:8b mnemon chat --data ./memory`
    """
    from rich.console import Console

    from mnemon.chat.conversation import EXIT, ChatConversation
    from mnemon.chat.line_input import read_piped_lines, read_typed_lines
    from mnemon.chat.screen import ChatScreen

    user = user or getpass.getuser()
    screen = ChatScreen(Console(highlight=False))
    async with AsyncExitStack() as ends:
        ends.enter_context(StopSignals())  # end the stack started here also if the terminal is closed
        deployment = await ends.enter_async_context(open_servers(data, screen.show_note, screen.show_spinner))
        answering = await ends.enter_async_context(_open_model(deployment, model))
        memory = await ends.enter_async_context(connect_memory(deployment, tenant, data))
        talk = ChatConversation(memory, user, answering, screen, budget)
        if screen.is_terminal and sys.stdin.isatty():
            who = (
                f"{answering.model} answers" if answering else "no model answers, the chat shows the contexts"
            )
            screen.show_note(f"You are {user} of {tenant}; {who}. /help lists the commands, Ctrl-D ends.")
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, talk.interrupt)
            await talk.answer_lines(read_typed_lines([*talk.commands, EXIT], lambda: talk.status_line))
            return ExitCode.DONE
        await talk.answer_lines(read_piped_lines())
        return ExitCode.NEGATIVE_RESULT if talk.failed else ExitCode.DONE


@asynccontextmanager
async def _open_model(deployment: "Deployment", name: str | None) -> AsyncIterator["OpenAIModel | None"]:
    """Yield the model that answers; None if `name` is `offline`, or if neither address nor key is set.

    End the command if the key cannot be used.
    """
    if name == "offline" or not (deployment.model_url or deployment.model_api_key):
        yield None
        return
    from mnemon_infra.models.language.openai.model import open_openai
    from mnemon_infra.models.language.port import ModelNotConfigured

    try:
        async with open_openai(name, deployment) as model:
            yield model
    except ModelNotConfigured as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
