"""Generations of rows and vectors, as the page of rebuilds lists and removes them.

The import of this module loads the vector store, which takes a third of a second: pages import the module on
use.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from mnemon.admin.connections import ServerConnections
from mnemon.operations.rebuild.listing import ListedGeneration, list_generations, remove_generation
from mnemon.operations.rebuild.live_vectors import count_points
from mnemon_infra.database.generations.progress import VECTORS
from mnemon_infra.database.locks import is_locked
from mnemon_infra.rebuild.generations import RebuildBlocked, Site, open_exclusive_site
from mnemon_infra.vectors.generations import is_folder_open
from mnemon_infra.vectors.port import VectorsUnavailable

_NOTES: Final = {
    "live": "It serves all readers and bots.",
    "former": "It was live before the last swap; `mnemon rebuild --back` makes it live again.",
    "as of": "Snapshot of log position {0}: bots and commands query it with `as_of`.",
    "next": "Complete, and not live yet.",
    "made": "A rebuild is filling it.",
    "left": "An interrupted rebuild left it. Run the same command again to continue.",
}


class GenerationRow(NamedTuple):
    """A generation as the page shows it.

    Attributes:
        goal: log position to which the generation is being filled; None if the generation is complete.
        note: the state and the use of the generation, in words.
        points: number of its points; None if the generation is not live, or no Edge owner reports the number.
    """

    listed: ListedGeneration
    goal: int | None
    note: str
    points: int | None

    @property
    def share(self) -> float:
        """Completed share of the work, from 0 to 1; vectors are filled after rows."""
        if not self.goal:
            return 1.0
        rows, vectors = self.listed.position or 0, self.listed.generation.vectors
        done = rows if vectors is None else (rows + vectors) / 2
        return done / self.goal


async def load_generation_rows(parts: ServerConnections) -> tuple[Sequence[GenerationRow], bool]:
    """Return all generations, and whether a rebuild is running."""
    site = await _open_site(parts)
    is_busy = await is_locked(site.database, "rebuild", site.live)
    end = await site.load_log_end()
    found = []
    for each in await list_generations(site):
        kind, up_to = each.generation.kind, each.generation.up_to
        is_made = not each.generation.is_complete
        found.append(
            GenerationRow(
                each,
                (up_to or end) if is_made else None,
                _NOTES["left" if is_made and not is_busy else "made" if is_made else kind].format(up_to),
                await _count_points(site, each) if kind == "live" else None,
            )
        )
    return found, is_busy


async def remove_unused_generation(parts: ServerConnections, name: str) -> str:
    """Remove a generation that is not live; return its whole name.

    Raises:
        RebuildBlocked: there is no such generation, it is live, a rebuild runs, a swap is unfinished, or the
            vector store does not answer.
        BrokerUnreachable, DatabaseUnavailable: a server does not answer; part of the generation may be left.
    """
    async with open_exclusive_site((await _open_site(parts)).deployment) as site:
        if await VECTORS.load_position(site.database, site.live) is not None:
            raise RebuildBlocked(
                "a swap was interrupted before the vectors were exchanged",
                "Complete the swap first: mnemon rebuild{data}",
            )
        try:
            return await remove_generation(site, name)
        except VectorsUnavailable as error:
            raise RebuildBlocked(str(error), "Try again when the vector store answers") from error


async def _count_points(site: Site, live: ListedGeneration) -> int | None:
    """Return the number of points of the live generation, as the Edge owner reports it.

    Return None if no Edge owner reports it: this process must not open the folder, which another
    process may be about to open.
    """
    if not is_folder_open(live.vectors):
        return None
    try:
        return await count_points(site, live.vectors)
    except VectorsUnavailable:
        return None


async def _open_site(parts: ServerConnections) -> Site:
    """Return the deployment with open connections and, for a stack of `mnemon up`, its folder of vectors."""
    deployment = parts.deployment
    if parts.data and not (deployment.qdrant_url or deployment.vectors_folder):
        deployment = deployment.model_copy(update={"vectors_folder": parts.data / "vectors"})
    return Site(deployment, await parts.get_broker(), await parts.get_database())
