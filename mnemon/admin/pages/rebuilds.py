"""Rebuilds: generations of rows and vectors, and the progress of a running rebuild."""

from typing import Final

from starlette.responses import Response

from mnemon.admin.connections import ServerConnections
from mnemon.admin.page import PageSection, Visit
from mnemon.admin.rendering.outages import PageError
from mnemon.display_text import format_data_option

pages = PageSection("Rebuilds", "/rebuilds")

_COMMANDS: Final = (
    ("Compare the live generation with a rebuilt one, row by row and vector by vector", "--verify"),
    ("Rebuild rows and vectors from the log, and swap them in",),
    ("Swap back to the former generation, with the events since the swap", "--back"),
    ("Make a snapshot as of a time, next to the live generation", "--until 2026-11-21T10:00:00Z"),
    (
        "Repeat the decisions on all facts with other thresholds, and make the changes after confirmation",
        "--redecide dedupe.update_threshold=0.8",
    ),
    ("On a stopped stack: change the embedding model", "--reembed openai/text-embedding-3-small"),
)


@pages.get("/rebuilds")
async def show_rebuilds(visit: Visit) -> Response:
    """Show all generations, and the commands that make new generations."""
    from mnemon.admin.generations import load_generation_rows

    generations, is_busy = await load_generation_rows(visit.connections)
    commands = [(what, _spell_command(visit.connections, *options)) for what, *options in _COMMANDS]
    return visit.render("rebuilds/list.html", generations=generations, is_busy=is_busy, commands=commands)


@pages.get("/rebuilds/live")
async def show_progress(visit: Visit) -> Response:
    """Render the fragment with all generations and the progress of a rebuild."""
    from mnemon.admin.generations import load_generation_rows

    generations, is_busy = await load_generation_rows(visit.connections)
    return visit.render("rebuilds/live.html", generations=generations, is_busy=is_busy)


@pages.post("/rebuilds/confirm")
async def confirm_drop(visit: Visit) -> Response:
    """Ask to confirm the removal of a generation."""
    from mnemon.admin.generations import load_generation_rows

    generations, _ = await load_generation_rows(visit.connections)
    named = [each for each in generations if each.listed.generation.schema == visit.form["name"]]
    if not named:
        return visit.redirect("/rebuilds", f"The generation {visit.form['name']} no longer exists.")
    return visit.render("rebuilds/drop.html", shown=named[0])


@pages.post("/rebuilds/drop")
async def drop_generation(visit: Visit) -> Response:
    """Remove a generation that is not live."""
    from mnemon.admin.generations import remove_unused_generation
    from mnemon_infra.rebuild.generations import RebuildBlocked

    try:
        schema = await remove_unused_generation(visit.connections, visit.form["name"])
    except RebuildBlocked as error:
        next_step = error.describe_next_step(format_data_option(visit.connections.data))
        return visit.render_error(
            PageError(409, "The generation cannot be dropped now", str(error), next_step)
        )
    return visit.redirect("/rebuilds", f"{schema} is removed.")


def _spell_command(parts: ServerConnections, *options: str) -> str:
    return " ".join(("mnemon rebuild", *options)) + format_data_option(parts.data)
