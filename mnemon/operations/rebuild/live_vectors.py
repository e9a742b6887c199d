"""Access of a rebuild to the live vectors and to the vectors of other generations."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nats.aio.client import Client

from mnemon_contracts.subjects import Owner, parse_owner
from mnemon_infra.broker.streams.triggers import list_trigger_subjects
from mnemon_infra.config import Deployment
from mnemon_infra.rebuild.generations import Site
from mnemon_infra.vectors.edge.owner import EdgeOwner
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.generations import has_vectors, is_folder_open, read_model_record
from mnemon_infra.vectors.port import Collection, PointPages, VectorsInUse, VectorsOutdated


@asynccontextmanager
async def open_live_pages(site: Site) -> AsyncIterator[PointPages | None]:
    """Open the live points, through the Edge owner or directly. Yield None if no vectors exist.

    Raises:
        VectorsUnavailable: the engine does not answer.
        VectorsOutdated: the vectors do not name the model that made them.
        VectorsInUse: another process opened the folder of the vectors at the same time.
    """
    if not await has_vectors(site.deployment):
        yield None
        return
    if is_folder_open(site.deployment):
        yield EdgeOwner(site.connection)
        return
    made_by = await read_model_record(site.deployment)
    if made_by is None:
        raise VectorsOutdated(
            "the embedding model of the vectors is not recorded: stop mnemon and run `mnemon reindex`"
        )
    async with open_vectors(site.deployment, model=made_by.model, dimension=made_by.dimension) as vectors:
        yield vectors


async def list_unswept_owners(connection: Client) -> set[Owner]:
    """Return the users whose live points `index` still has to sweep.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    return {parse_owner(subject) for subject in await list_trigger_subjects(connection, "work.index.>")}


async def count_points(site: Site, generation: Deployment) -> int | None:
    """Count the points of a generation, which may be live.

    Returns:
        The number of points; None if there are no vectors or their model is not recorded, or if the
        generation is not live and a process has it open.

    Raises:
        VectorsUnavailable: the engine does not answer.
    """
    made_by = await read_model_record(generation)
    if made_by is None:
        return None
    if is_folder_open(generation):
        is_live = generation.vectors_folder == site.deployment.vectors_folder
        return sum((await EdgeOwner(site.connection).count_points()).values()) if is_live else None
    try:
        async with open_vectors(generation, model=made_by.model, dimension=made_by.dimension) as vectors:
            return sum([await vectors.count(each) for each in Collection])
    except VectorsInUse:
        return None
