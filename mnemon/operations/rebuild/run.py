"""Rebuild: replay the log into a new generation, and swap it with the live generation."""

from time import perf_counter
from typing import NamedTuple

from mnemon.operations.rebuild.generations import GenerationProgress, open_generation
from mnemon.operations.rebuild.swap import swap_rows, swap_vectors
from mnemon_infra.generation_names import name_generation
from mnemon_infra.rebuild.generations import RebuildBlocked, Site, catch_up_with_log
from mnemon_infra.vectors.generations import locate_generation


class RebuildResult(NamedTuple):
    """Result of a rebuild that has swapped the generations.

    Attributes:
        former: schema of the generation that was live before.
        position: log position that the rows had reached at the swap.
        events: events replayed into rows.
        seconds: duration of the replay into rows, in seconds.
        vector_seconds: duration of the replay into vectors, in seconds; None if there are no vectors.
    """

    former: str
    position: int
    events: int
    seconds: float
    vector_seconds: float | None


async def rebuild_generation(site: Site, progress: GenerationProgress) -> RebuildResult:
    """Replay the log into a new generation, and swap it with the live generation.

    The new rows become live once they have reached the end of the log, while writers of rows wait. The new
    vectors follow. This function does not compare the generations; `GenerationVerification` compares them.
    Other errors of `open_generation` propagate.

    Raises:
        RebuildBlocked: a former generation exists, or another schema has the name of the former or of the new
            generation.
        nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: a server does not
            answer; the next call continues from the position reached.
    """
    await require_no_former_generation(site)
    async with open_generation(site, "next", progress) as generation:
        rows, vectors = generation
        begun = perf_counter()
        await catch_up_with_log(site, rows, progress)
        events, seconds, begun = rows.events, perf_counter() - begun, perf_counter()
        await generation.replay_to_end(site, progress)
        vector_seconds = perf_counter() - begun if vectors else None
        await swap_rows(site, generation, progress)
    await swap_vectors(site, progress)
    former = name_generation(site.live, "former")
    return RebuildResult(former, rows.reached, events, seconds, vector_seconds)


async def require_no_former_generation(site: Site) -> None:
    """Check that no former generation exists, which a rebuild would replace, nor its folder of vectors.

    Raises:
        RebuildBlocked: a former generation or its folder exists, or another schema has its name.
        NameTooLong: the name of the live generation leaves no room for a suffix.
    """
    former = name_generation(site.live, "former")
    if await site.find_generation(former):
        raise RebuildBlocked(
            f"the former generation, {former}, still exists",
            "Drop the former generation with `mnemon rebuild --drop before{data}`, or swap back to it with "
            "`mnemon rebuild --back{data}`",
        )
    folder = locate_generation(site.deployment, "former").vectors_folder
    if folder and not site.deployment.qdrant_url and folder.exists():
        raise RebuildBlocked(
            f"the folder of former vectors, {folder}, exists without rows of a former generation",
            "Move the folder away or delete it, then run: mnemon rebuild{data}",
        )
