"""The commands. Each module imports what is heavy when its command runs, so that `--help` is at once."""

from importlib.metadata import version
from typing import Annotated

import typer

from mnemon.cli import (
    admin,
    audit,
    auth,
    bench,
    calibrate,
    context,
    dead,
    demo,
    document,
    erase,
    export,
    facts,
    history,
    import_,
    mcp,
    migrate,
    profile,
    provision,
    rebuild,
    reindex,
    run,
    settings,
    status,
    tasks,
    tools,
    up,
    usage,
)

app = typer.Typer(
    name="mnemon",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("up")(up.up)
app.command("run")(run.run)
app.command("provision")(provision.provision)
app.command("migrate")(migrate.migrate)
app.command("rebuild")(rebuild.rebuild)
app.command("reindex")(reindex.reindex)
app.command("status")(status.status)
app.command("audit")(audit.audit)
app.command("admin")(admin.admin)
app.command("usage")(usage.usage)
app.command("demo")(demo.demo)
app.command("history")(history.history)
app.command("context")(context.context)
app.command("save")(facts.save)
app.command("read")(facts.read)
app.command("search")(facts.search)
app.command("get")(facts.get)
app.command("update")(facts.update)
app.command("forget")(facts.forget)
app.command("profile")(profile.profile)
app.command("erase")(erase.erase)
app.add_typer(tasks.app, name="tasks")
app.add_typer(document.app, name="document")
app.command("tools")(tools.tools)
app.command("mcp")(mcp.mcp)
app.command("bench")(bench.bench)
app.command("calibrate")(calibrate.calibrate)
app.add_typer(dead.app, name="dead")
app.add_typer(import_.app, name="import")
app.add_typer(export.app, name="export")
app.add_typer(settings.app, name="settings")
app.add_typer(auth.app, name="auth")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mnemon {version('mnemon')}")
        raise typer.Exit


@app.callback()
def mnemon(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and end."),
    ] = False,
) -> None:
    """Replayable long-term memory for chat bots, on NATS JetStream.

    `mnemon up` starts all of it here, without Docker. With servers of your own, set MNEMON_NATS_URL,
    MNEMON_QDRANT_URL and DATABASE_URL (or PG_HOST PG_PORT PG_DB PG_USER PG_PASSWORD); then
    `mnemon provision`, `mnemon migrate` and
    `mnemon run persist index dedupe compact extract maintain retrieve`.

    Ends with 0 done, 1 it is not so, 2 wrong use, 3 a needed part is missing or does not answer.
    """
