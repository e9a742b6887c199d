"""The generations that are there, and the end of one."""

import asyncio
from typing import NamedTuple

from mnemon_infra.config import Deployment
from mnemon_infra.database.generations import generation_repository
from mnemon_infra.database.generations.generation_repository import Generation
from mnemon_infra.rebuild.generations import InTheWay, Site
from mnemon_infra.vectors.generations import bytes_of, drop_generation, of_generation


class Listed(NamedTuple):
    """A generation of rows, and the vectors that go with it.

    Attributes:
        generation: of the rows.
        position: the log up to here is in it.
        vectors: the deployment that has its vectors, if it has any.
        vector_bytes: what they take on this disk; None where they are not in a folder.
    """

    generation: Generation
    position: int | None
    vectors: Deployment
    vector_bytes: int | None


async def listed(place: Site) -> list[Listed]:
    """All generations that a rebuild has made, the live one first.

    Raises:
        nats.errors.Error, DatabaseUnavailable: one of the servers does not answer.
    """
    applied = await place.applied()
    found = []
    for each in await place.generations():
        if each.is_made_here:
            own = of_generation(place.deployment, each.kind, each.up_to)
            position = applied if each.kind == "live" else each.reached
            found.append(Listed(each, position, own, await asyncio.to_thread(bytes_of, own)))
    return found


async def dropped(place: Site, name: str) -> str:
    """Remove a generation that is not live, rows and vectors; nobody else may be at it.

    Args:
        place: where.
        name: its whole name, or how that ends.

    Returns:
        Its whole name.

    Raises:
        InTheWay: there is none of this name, or it is live.
        DatabaseUnavailable, VectorsUnavailable: something of it is still there.
    """
    found = await place.found(name) or await place.found(f"{place.live}_{name}")
    if found is None or found.kind == "live":
        raise InTheWay(
            f"{name} is live" if found else f"there is no generation {name!r}",
            "List the generations: mnemon rebuild --list",
        )
    await drop_generation(of_generation(place.deployment, found.kind, found.up_to))
    to = of_generation(place.deployment, "next")
    if found.kind == "former" and not await place.found(to.database_schema):
        # Its vectors, where going back to it was cut off.
        await drop_generation(to)
    await generation_repository.drop(place.database, found.schema)
    return found.schema
