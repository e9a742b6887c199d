"""Rebuilds: which generations of rows and vectors there are, and what is made just now."""

from collections.abc import Sequence
from shlex import quote
from typing import Final, NamedTuple

from starlette.responses import Response

from infra.database import vector_records
from infra.database.locking import is_locked
from infra.rebuilding.making import InTheWay, Site, site_alone
from mnemon.admin.parts import Parts
from mnemon.admin.troubles import Trouble
from mnemon.admin.visiting import Pages, Visit
from mnemon.rebuilding.listing import Listed, dropped, listed
from mnemon.rebuilding.live import counted

pages = Pages("Rebuilds", "/rebuilds")


_COMMANDS: Final = (
    (
        "Compare what is in use with what the log gives, row for row and vector for vector",
        "--verify",
    ),
    ("Make rows and vectors anew, and put them in the place of those in use",),
    ("Go back to what was in use before, with what came since", "--back"),
    ("Beside what is in use, make what was known at a time", "--until 2026-11-21T10:00:00Z"),
    (
        "Show what other thresholds would have made of all facts, and change it once that is confirmed",
        "--redecide dedupe.update_threshold=0.8",
    ),
    ("On a stopped stack: another embedding model", "--reembed openai/text-embedding-3-small"),
)


class Shown(NamedTuple):
    """A generation as the page shows it.

    Attributes:
        goal: the log position that it is brought to; None where it is the live one, or rests.
        note: what a person may do with it.
        points: of its vectors, where a look at them costs nothing.
    """

    listed: Listed
    goal: int | None
    note: str
    points: int | None

    @property
    def share(self) -> float:
        """How much of the way is done; vectors come after rows."""
        if not self.goal:
            return 1.0
        vectors = self.listed.generation.vectors
        done = [self.listed.position or 0, *(() if vectors is None else (vectors,))]
        return sum(done) / len(done) / self.goal


@pages.get("/rebuilds")
async def rebuilds(visit: Visit) -> Response:
    """All generations, and the commands that make others."""
    place = await _place(visit.parts)
    generations, is_busy = await _shown(place)
    commands = [(what, _command(visit.parts, *options)) for what, *options in _COMMANDS]
    return visit.page("rebuilds.html", generations=generations, is_busy=is_busy, commands=commands)


@pages.get("/rebuilds/live")
async def live(visit: Visit) -> Response:
    """The part of the page that changes while somebody rebuilds."""
    generations, is_busy = await _shown(await _place(visit.parts))
    return visit.page("rebuilds_live.html", generations=generations, is_busy=is_busy)


@pages.post("/rebuilds/confirm")
async def ask(visit: Visit) -> Response:
    """What is to be dropped, to be confirmed."""
    place = await _place(visit.parts)
    generations, _ = await _shown(place)
    named = [each for each in generations if each.listed.generation.schema == visit.form["name"]]
    if not named:
        return visit.goto("/rebuilds", f"There is no generation {visit.form['name']} any more.")
    return visit.page("rebuild_drop.html", shown=named[0])


@pages.post("/rebuilds/drop")
async def drop(visit: Visit) -> Response:
    """Remove a generation that is not in use."""
    try:
        async with site_alone((await _place(visit.parts)).deployment) as place:
            if await vector_records.reached(place.database, place.live) is not None:
                raise InTheWay(
                    "a switch was cut off before the vectors were exchanged",
                    f"Complete it first: {_command(visit.parts)}",
                )
            schema = await dropped(place, visit.form["name"])
    except InTheWay as error:
        return visit.refusal(Trouble(409, "It cannot be dropped now", str(error), error.next_step))
    return visit.goto("/rebuilds", f"{schema} is removed.")


async def _place(parts: Parts) -> Site:
    """The servers, and the folder of the vectors where they are those of `mnemon up`."""
    deployment = parts.deployment
    if parts.data and not (deployment.qdrant_url or deployment.vectors_folder):
        deployment = deployment.model_copy(update={"vectors_folder": parts.data / "vectors"})
    return Site(deployment, await parts.broker(), await parts.database())


async def _shown(place: Site) -> tuple[Sequence[Shown], bool]:
    """All generations, and whether somebody is at them now."""
    is_busy = await is_locked(place.database, "rebuild", place.live)
    end = await place.log_end()
    found = []
    for each in await listed(place):
        kind, up_to = each.generation.kind, each.generation.up_to
        is_made = not each.generation.is_complete
        found.append(
            Shown(
                each,
                (up_to or end) if is_made else None,
                _NOTES["left" if is_made and not is_busy else "made" if is_made else kind].format(up_to),
                await counted(place, each.vectors) if kind == "live" else None,
            )
        )
    return found, is_busy


_NOTES = {
    "live": "Readers and bots are served from it.",
    "former": "In use before the last switch, and kept to go back to.",
    "as of": "As of log position {0}: bots and commands ask it with `as_of`.",
    "made": "It is being made.",
    "left": "An earlier attempt has left it. The same command goes on from there.",
}


def _command(parts: Parts, *options: str) -> str:
    data = f" --data {quote(str(parts.data))}" if parts.data else ""
    return " ".join(("mnemon rebuild", *options)) + data
