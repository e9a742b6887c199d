"""The generations of rows and vectors as the page shows them, and the end of one.

It brings the engine of the vectors with it, a third of a second: who needs it imports it when somebody looks.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from mnemon.admin.connections import Parts
from mnemon.operations.rebuild.listing import Listed, dropped, listed
from mnemon.operations.rebuild.live_vectors import counted
from mnemon_infra.database.generations import vector_progress
from mnemon_infra.database.locks import is_locked
from mnemon_infra.rebuild.generations import InTheWay, Site, site_alone
from mnemon_infra.vectors.generations import is_held
from mnemon_infra.vectors.port import VectorsUnavailable

_NOTES: Final = {
    "live": "It serves all readers and bots.",
    "former": "It was live before the last swap, and is kept to return to.",
    "as of": "Snapshot of log position {0}: bots and commands query it with `as_of`.",
    "next": "Complete, and not live yet.",
    "made": "A rebuild is filling it.",
    "left": "An interrupted rebuild left it. Run the same command again to continue.",
}


class GenerationRow(NamedTuple):
    """A generation as the page shows it.

    Attributes:
        goal: the log position that it is brought to; None where it is the live one, or rests.
        note: what a person may do with it.
        points: of its vectors; None where no process can say.
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
        rows, vectors = self.listed.position or 0, self.listed.generation.vectors
        done = rows if vectors is None else (rows + vectors) / 2
        return done / self.goal


async def shown(parts: Parts) -> tuple[Sequence[GenerationRow], bool]:
    """All generations, and whether somebody is at them now.

    Raises:
        BrokerUnreachable, DatabaseUnavailable: one of them does not answer.
    """
    place = await _place(parts)
    is_busy = await is_locked(place.database, "rebuild", place.live)
    end = await place.log_end()
    found = []
    for each in await listed(place):
        kind, up_to = each.generation.kind, each.generation.up_to
        is_made = not each.generation.is_complete
        found.append(
            GenerationRow(
                each,
                (up_to or end) if is_made else None,
                _NOTES["left" if is_made and not is_busy else "made" if is_made else kind].format(up_to),
                await _points(place, each) if kind == "live" else None,
            )
        )
    return found, is_busy


async def removed(parts: Parts, name: str) -> str:
    """Remove a generation that is not in use; its whole name.

    Raises:
        InTheWay: it cannot be done now.
        BrokerUnreachable, DatabaseUnavailable: something of it is still there.
    """
    async with site_alone((await _place(parts)).deployment) as place:
        if await vector_progress.reached(place.database, place.live) is not None:
            raise InTheWay(
                "a swap was interrupted before the vectors were exchanged",
                "Complete it first: mnemon rebuild",
            )
        try:
            return await dropped(place, name)
        except VectorsUnavailable as error:
            raise InTheWay(str(error), "Try again when the vectors' engine answers") from error


async def _points(place: Site, live: Listed) -> int | None:
    """As the process says that holds the vectors: who opened them here would be in its way."""
    if not is_held(live.vectors):
        return None
    try:
        return await counted(place, live.vectors)
    except VectorsUnavailable:
        return None


async def _place(parts: Parts) -> Site:
    """The servers, and the folder of the vectors where they are those of `mnemon up`."""
    deployment = parts.deployment
    if parts.data and not (deployment.qdrant_url or deployment.vectors_folder):
        deployment = deployment.model_copy(update={"vectors_folder": parts.data / "vectors"})
    return Site(deployment, await parts.broker(), await parts.database())
