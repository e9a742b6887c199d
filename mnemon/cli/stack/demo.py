"""Command `mnemon demo`: run a demonstration on temporary servers."""

import asyncio
import json
import logging
from typing import Annotated

import typer

from mnemon.cli.options.target import load_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption
from mnemon.cli.terminal.signals import StopSignals


@perform_async
async def demo(
    model: Annotated[
        str | None,
        typer.Option(
            envvar="MNEMON_MODEL",
            help="Model that writes summaries and extracts facts, of the server at MNEMON_MODEL_URL "
            "(OpenAI-compatible, such as Ollama) or of OpenAI. Default: built-in rules, which know "
            "a few phrases.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Run a demonstration, without setup and without leaving anything behind.

    The demo starts nats-server, PostgreSQL and the consumers in a temporary folder, sends a sample
    conversation in English and Russian, and requests the memory as a bot would. Configured NATS servers and
    databases are not touched. If MNEMON_QDRANT_URL names a Qdrant server, the vectors are in separate
    collections on that server, which are deleted at the end.

    Exits with code 1 if an event is not accounted for, or if the demo was stopped.

    Example: `MNEMON_MODEL_URL=http://localhost:11434/v1 MNEMON_MODEL=qwen3:8b mnemon demo`
    """
    from mnemon.demo.view import DemoScreen, create_console, show_introduction, show_report

    terminal = create_console(quiet=as_json)
    show_introduction(terminal)  # before the imports, which take a second
    from mnemon.demo.derived_memory import NotDerived
    from mnemon.demo.run import LogNotReached, run_demo
    from mnemon_infra.telemetry.logging import configure_logging
    from mnemon_producers.errors import AskFailed, NotConnected, PublishFailed

    # The sample has broken events: their warnings are expected, and the report shows the dead letters.
    configure_logging(level=logging.ERROR)
    environment = load_deployment()
    try:
        with StopSignals(), DemoScreen(terminal) as screen:
            report = await run_demo(screen, environment, model)
    except asyncio.CancelledError:
        refuse(ExitCode.NEGATIVE_RESULT, "the demo was stopped, and its temporary folder is removed")
    except (LogNotReached, NotDerived, PublishFailed, AskFailed, NotConnected) as error:
        refuse(ExitCode.UNAVAILABLE, f"the demo failed: {error}")
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        show_report(report, terminal)
    return ExitCode.DONE if report.is_balanced else ExitCode.NEGATIVE_RESULT
