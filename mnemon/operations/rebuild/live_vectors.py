"""The vectors in use, and those of other generations, as a rebuild looks at them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nats.aio.client import Client

from mnemon_contracts.subjects import Owner, parse_owner
from mnemon_infra.broker.streams.triggers import waiting
from mnemon_infra.config import Deployment
from mnemon_infra.rebuild.generations import Site
from mnemon_infra.vectors.edge_owner import EdgeOwner
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.generations import are_there, is_held, made_by_of
from mnemon_infra.vectors.port import Collection, PointPages, VectorsInUse, VectorsOutdated


@asynccontextmanager
async def live_pages(place: Site) -> AsyncIterator[PointPages | None]:
    """The points in use: of the process that holds them, or read here; None where there are none.

    Raises:
        VectorsUnavailable: the engine does not answer.
        VectorsOutdated: it does not say which model made them.
    """
    if not await are_there(place.deployment):
        yield None
        return
    if is_held(place.deployment):
        yield EdgeOwner(place.connection)
        return
    made_by = await made_by_of(place.deployment)
    if made_by is None:
        raise VectorsOutdated("the vectors do not say which embedding model made them: run `mnemon reindex`")
    async with open_vectors(place.deployment, model=made_by.model, dimension=made_by.dimension) as vectors:
        yield vectors


async def unswept(connection: Client) -> set[Owner]:
    """The users whose live points `index` has still to look through.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    return {parse_owner(subject) for subject in await waiting(connection, "work.index.>")}


async def counted(place: Site, generation: Deployment) -> int | None:
    """How many points a generation has, or the live one; None while a process has it open, or without any.

    Raises:
        VectorsUnavailable: the engine does not answer.
    """
    made_by = await made_by_of(generation)
    if made_by is None:
        return None
    if is_held(generation):
        is_live = generation.vectors_folder == place.deployment.vectors_folder
        return sum((await EdgeOwner(place.connection).counts()).values()) if is_live else None
    try:
        async with open_vectors(generation, model=made_by.model, dimension=made_by.dimension) as vectors:
            return sum([await vectors.count(each) for each in Collection])
    except VectorsInUse:
        return None
