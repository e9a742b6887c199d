"""Registration of all commands. Their modules defer heavy imports to the run, so that `--help` is fast."""

from importlib.metadata import version
from typing import Annotated

import typer

from mnemon.cli import settings, tenant, tools
from mnemon.cli.backup import backup_command, restore_command
from mnemon.cli.dead_letters import dead_command
from mnemon.cli.deployment import audit, auth, batches, migrate, provision, status, usage
from mnemon.cli.documents import document_command
from mnemon.cli.imports import import_command
from mnemon.cli.measurement import bench, calibrate
from mnemon.cli.memory import context, erase, export, facts, history, profile, tasks
from mnemon.cli.rebuild import rebuild_command, reindex
from mnemon.cli.stack import admin, chat, demo, gateway, mcp, run, try_, up

app = typer.Typer(
    name="mnemon",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_START = "Get started"
_MEMORY = "A user's memory"
_INTEGRATIONS = "Import, export and integrations"
_OPERATION = "Operate"
_SERVERS = "On your own servers"

app.command("demo", rich_help_panel=_START)(demo.demo)
app.command("up", rich_help_panel=_START)(up.up)
app.command("chat", rich_help_panel=_START)(chat.chat)
app.command("try", rich_help_panel=_START)(try_.try_)

app.command("context", rich_help_panel=_MEMORY)(context.context)
app.command("history", cls=history.HistoryCommand, rich_help_panel=_MEMORY)(history.history)
app.command("save", rich_help_panel=_MEMORY)(facts.save)
app.command("read", rich_help_panel=_MEMORY)(facts.read)
app.command("search", rich_help_panel=_MEMORY)(facts.search)
app.command("get", rich_help_panel=_MEMORY)(facts.get)
# These two refuse further arguments themselves, with the option to use.
_FURTHER = {"allow_extra_args": True}
app.command("update", rich_help_panel=_MEMORY, context_settings=_FURTHER)(facts.update)
app.command("forget", rich_help_panel=_MEMORY, context_settings=_FURTHER)(facts.forget)
app.command("profile", rich_help_panel=_MEMORY)(profile.profile)
app.add_typer(tasks.app, name="tasks", rich_help_panel=_MEMORY)
app.add_typer(document_command.app, name="document", rich_help_panel=_MEMORY)
app.command("erase", rich_help_panel=_MEMORY)(erase.erase)

app.add_typer(import_command.app, name="import", rich_help_panel=_INTEGRATIONS)
app.add_typer(export.app, name="export", rich_help_panel=_INTEGRATIONS)
app.command("tools", rich_help_panel=_INTEGRATIONS)(tools.tools)
app.command("gateway", rich_help_panel=_INTEGRATIONS)(gateway.gateway)
app.command("mcp", rich_help_panel=_INTEGRATIONS)(mcp.mcp)

app.command("status", rich_help_panel=_OPERATION)(status.status)
app.command("admin", rich_help_panel=_OPERATION)(admin.admin)
app.command("audit", rich_help_panel=_OPERATION)(audit.audit)
app.command("backup", rich_help_panel=_OPERATION)(backup_command.backup)
app.command("restore", rich_help_panel=_OPERATION)(restore_command.restore)
app.add_typer(tenant.app, name="tenant", rich_help_panel=_OPERATION)
app.command("usage", rich_help_panel=_OPERATION)(usage.usage)
app.command("batches", rich_help_panel=_OPERATION)(batches.batches)
app.add_typer(settings.app, name="settings", rich_help_panel=_OPERATION)
app.add_typer(dead_command.app, name="dead", rich_help_panel=_OPERATION)
app.add_typer(auth.app, name="auth", rich_help_panel=_OPERATION)
app.command("rebuild", cls=rebuild_command.RebuildCommand, rich_help_panel=_OPERATION)(
    rebuild_command.rebuild
)
app.command("reindex", rich_help_panel=_OPERATION)(reindex.reindex)
app.command("calibrate", rich_help_panel=_OPERATION)(calibrate.calibrate)
app.command("bench", rich_help_panel=_OPERATION)(bench.bench)

app.command("provision", rich_help_panel=_SERVERS)(provision.provision)
app.command("migrate", rich_help_panel=_SERVERS)(migrate.migrate)
app.command("run", rich_help_panel=_SERVERS)(run.run)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mnemon {version('mnemon')}")
        raise typer.Exit


@app.callback()
def mnemon(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Replayable long-term memory for chat bots, on NATS JetStream.

    `mnemon up` starts the whole stack on this machine, without Docker. With your own servers, set
    MNEMON_NATS_URL, MNEMON_QDRANT_URL and DATABASE_URL (or PG_HOST PG_PORT PG_DB PG_USER PG_PASSWORD); then
    run `mnemon provision`, `mnemon migrate` and `mnemon run persist index dedupe compact extract maintain
    retrieve`.

    Exit codes: 0 done, 1 a negative result, 2 wrong use or a file that cannot be used, 3 a needed server,
    backup or package is missing or does not answer.
    """
