"""Command `mnemon reindex`: remove all vectors, so that `index` makes them again from the log."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer

from mnemon.cli.options.target import complete_command, load_deployment, open_broker, require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_json
from mnemon.display_text import format_count


@perform_async
async def reindex(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Folder of a stopped stack. Default: the servers in MNEMON_NATS_URL and MNEMON_QDRANT_URL, "
            "or the vectors in MNEMON_VECTORS_FOLDER.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Remove all vectors, so that `index` makes them again, for example for another embedding model.

    Stop the consumers first. `index` starts at the beginning of the log the next time it runs; rows and the
    log are not touched. Searches find less until `index` has caught up.

    Example: `mnemon reindex --data ./memory && mnemon up --data ./memory`
    """
    from mnemon_infra.broker.provisioning.topology import reset_durable
    from mnemon_infra.embedded.stack import run_stack
    from mnemon_infra.telemetry.logging import configure_logging
    from mnemon_infra.vectors.engines import reset_vectors

    if data is not None and not any((data / part).is_dir() for part in ("nats", "postgres", "vectors")):
        create = complete_command("mnemon up", data)
        refuse(ExitCode.UNAVAILABLE, f"there is no stack in {data}", f"Create a stack: {create}")
    deployment = load_deployment() if data else require_deployment(None, "broker")
    configure_logging()
    async with AsyncExitStack() as ends:
        if data is not None:
            deployment = (await ends.enter_async_context(run_stack(data, deployment))).deployment
        connection = await ends.enter_async_context(open_broker(deployment, "mnemon-reindex"))
        # Reset the durable first: after an interruption, `index` has too many events to read, not too few.
        events = await reset_durable(connection, "LOG", "index")
        await reset_vectors(deployment)
    if as_json:
        show_json({"to_index": events})
    else:
        typer.echo(
            f"The vectors are removed. {format_count(events, 'event')} of the log will be indexed when"
            " `index` runs."
        )
    return ExitCode.DONE
