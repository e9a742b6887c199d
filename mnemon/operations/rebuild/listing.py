"""Listing and removal of generations."""

import asyncio
from typing import NamedTuple

from mnemon_infra.config import Deployment
from mnemon_infra.database.generations import generation_repository
from mnemon_infra.database.generations.generation_repository import Generation
from mnemon_infra.rebuild.generations import NoSuchGeneration, RebuildBlocked, Site
from mnemon_infra.vectors.generations import drop_generation, locate_generation, measure_bytes


class ListedGeneration(NamedTuple):
    """A generation of rows, with the vectors that belong to it.

    Attributes:
        position: log position up to which it is filled; None if it is not recorded.
        vectors: the deployment with the schema and the vectors folder of the generation; the vectors may be
            absent.
        vector_bytes: size of the vectors on this disk in bytes; None if they are not in a folder.
    """

    generation: Generation
    position: int | None
    vectors: Deployment
    vector_bytes: int | None


async def list_generations(site: Site) -> list[ListedGeneration]:
    """Return the live generation, then the generations that rebuilds have made.

    Raises:
        DatabaseUnavailable, nats.errors.Error: a server does not answer.
    """
    applied = await site.load_applied_position()
    found = []
    for each in await site.list_generations():
        if each.is_made_here:
            own = locate_generation(site.deployment, each.kind, each.up_to)
            position = applied if each.kind == "live" else each.reached
            found.append(ListedGeneration(each, position, own, await asyncio.to_thread(measure_bytes, own)))
    return found


async def remove_generation(site: Site, name: str) -> str:
    """Remove rows and vectors of a generation that is not live.

    Args:
        site: the deployment and its connections.
        name: the whole name of the generation, or its suffix to the name of the live one, such as `before`.

    Returns:
        The whole name.

    Raises:
        NoSuchGeneration: no generation has this name.
        RebuildBlocked: the generation is live, or no rebuild has made the schema of this name.
        NameTooLong: the name of the live generation leaves no room for a suffix.
        DatabaseUnavailable, VectorsUnavailable: a server does not answer; part of the generation may be left.
    """
    found = await site.find_generation(name) or await site.find_generation(f"{site.live}_{name}")
    next_step = "List the generations: mnemon rebuild --list{data}"
    if found is None:
        raise NoSuchGeneration(f"there is no generation {name!r}", next_step)
    if found.kind == "live":
        raise RebuildBlocked(f"the generation {name} is live and cannot be dropped", next_step)
    await drop_generation(locate_generation(site.deployment, found.kind, found.up_to))
    to = locate_generation(site.deployment, "next")
    if found.kind == "former" and not await site.find_generation(to.database_schema):
        # An interrupted return to this generation has renamed its vectors.
        await drop_generation(to)
    await generation_repository.drop_schema(site.database, found.schema)
    return found.schema
