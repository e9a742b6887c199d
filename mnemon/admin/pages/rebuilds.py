"""Rebuilds: generations of rows and vectors, and the progress of a running rebuild."""

from shlex import quote
from typing import Final

from starlette.responses import Response

from mnemon.admin.connections import Parts
from mnemon.admin.page import PageSection, Visit
from mnemon.admin.rendering.outages import Trouble

pages = PageSection("Rebuilds", "/rebuilds")

_COMMANDS: Final = (
    ("Compare the live generation with a rebuilt one, row by row and vector by vector", "--verify"),
    ("Rebuild rows and vectors from the log, and swap them in",),
    ("Swap back to the former generation, with all later events", "--back"),
    ("Make a snapshot as of a time, next to the live generation", "--until 2026-11-21T10:00:00Z"),
    (
        "Repeat the decisions on all facts with other thresholds, and make the changes after confirmation",
        "--redecide dedupe.update_threshold=0.8",
    ),
    ("On a stopped stack: change the embedding model", "--reembed openai/text-embedding-3-small"),
)


@pages.get("/rebuilds")
async def rebuilds(visit: Visit) -> Response:
    """Show all generations, and the commands that make new ones."""
    from mnemon.admin.generations import shown

    generations, is_busy = await shown(visit.parts)
    commands = [(what, _command(visit.parts, *options)) for what, *options in _COMMANDS]
    return visit.page("rebuilds.html", generations=generations, is_busy=is_busy, commands=commands)


@pages.get("/rebuilds/live")
async def live(visit: Visit) -> Response:
    """Render the fragment that changes during a rebuild."""
    from mnemon.admin.generations import shown

    generations, is_busy = await shown(visit.parts)
    return visit.page("rebuilds_live.html", generations=generations, is_busy=is_busy)


@pages.post("/rebuilds/confirm")
async def ask(visit: Visit) -> Response:
    """Ask to confirm the removal of a generation."""
    from mnemon.admin.generations import shown

    generations, _ = await shown(visit.parts)
    named = [each for each in generations if each.listed.generation.schema == visit.form["name"]]
    if not named:
        return visit.goto("/rebuilds", f"The generation {visit.form['name']} no longer exists.")
    return visit.page("rebuild_drop.html", shown=named[0])


@pages.post("/rebuilds/drop")
async def drop(visit: Visit) -> Response:
    """Remove a generation that is not in use."""
    from mnemon.admin.generations import removed
    from mnemon_infra.rebuild.generations import RebuildBlocked

    try:
        schema = await removed(visit.parts, visit.form["name"])
    except RebuildBlocked as error:
        return visit.refusal(Trouble(409, "It cannot be dropped now", str(error), error.next_step))
    return visit.goto("/rebuilds", f"{schema} is removed.")


def _command(parts: Parts, *options: str) -> str:
    data = f" --data {quote(str(parts.data))}" if parts.data else ""
    return " ".join(("mnemon rebuild", *options)) + data
