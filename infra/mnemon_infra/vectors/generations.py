"""Generations of the vectors, each beside the rows that were derived from the same log.

With the embedded engine a generation is a folder beside the live one, on a Qdrant server a set of
collections.
"""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from mnemon_infra.config import Deployment
from mnemon_infra.generation_names import GenerationKind, name_of
from mnemon_infra.vectors.edge import alone_in
from mnemon_infra.vectors.embedding_metadata import RECORD, MadeBy
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.folder_swap import exchange, settle
from mnemon_infra.vectors.port import VectorsInUse, VectorsNotMade, VectorStore

_BLOCK: Final = 512
"""Bytes of a disk block; files of the engine have holes."""


def of_generation(deployment: Deployment, kind: GenerationKind, up_to: int | None = None) -> Deployment:
    """Return the deployment with the schema and the vectors folder of a generation.

    Raises:
        NameTooLong: the live generation's name is too long for a suffix.
    """
    own: dict[str, object] = {"database_schema": name_of(deployment.database_schema, kind, up_to)}
    if folder := deployment.vectors_folder:
        own["vectors_folder"] = folder.with_name(name_of(folder.name, kind, up_to))
    return deployment.model_copy(update=own)


@asynccontextmanager
async def open_as_of(
    deployment: Deployment, position: int, *, model: str, dimension: int | None
) -> AsyncIterator[VectorStore]:
    """Open the vectors as of a former log position for searches. A process may open them many times.

    Args:
        deployment: the live deployment.
        position: the log position of the generation.
        model: provider and model of the embedder.
        dimension: dimension of its vectors; None without an embedder.

    Raises:
        VectorsNotMade: there are none.
        VectorsInUse, VectorsOutdated, VectorsUnavailable, VectorsNotConfigured: as of `open_vectors`.
    """
    generation = of_generation(deployment, "as of", position)
    if not await are_there(generation):
        raise VectorsNotMade(
            f"there are no vectors as of position {position}: mnemon rebuild --until {position}"
        )
    async with open_vectors(generation, model=model, dimension=dimension) as vectors:
        yield vectors


async def are_there(deployment: Deployment) -> bool:
    """Return whether a deployment, or a generation of it, has vectors.

    Raises:
        VectorsUnavailable: the server does not answer.
    """
    if deployment.qdrant_url:
        from mnemon_infra.vectors import collections
        from mnemon_infra.vectors.server import connected

        async with connected(deployment.qdrant_url, deployment.qdrant_api_key) as client:
            return await collections.are_there(client, deployment.database_schema)
    folder = deployment.vectors_folder
    return folder is not None and (folder / RECORD).exists()


async def drop_generation(deployment: Deployment) -> None:
    """Remove the vectors of a generation that is not live; processes that have its folder open keep it.

    Raises:
        VectorsUnavailable: the server does not answer.
    """
    if deployment.qdrant_url:
        from mnemon_infra.vectors.collections import drop
        from mnemon_infra.vectors.server import connected

        async with connected(deployment.qdrant_url, deployment.qdrant_api_key) as client:
            await drop(client, deployment.database_schema)
    elif deployment.vectors_folder:
        shutil.rmtree(deployment.vectors_folder, ignore_errors=True)


async def rename_generation(deployment: Deployment, to: Deployment) -> None:
    """Rename the vectors of a generation that is not live; the new name must be free.

    Raises:
        VectorsUnavailable: the server does not answer.
    """
    if deployment.qdrant_url:
        from mnemon_infra.vectors.collections import rename
        from mnemon_infra.vectors.server import connected

        async with connected(deployment.qdrant_url, deployment.qdrant_api_key) as client:
            await rename(client, deployment.database_schema, to.database_schema)
    elif deployment.vectors_folder and to.vectors_folder:
        deployment.vectors_folder.rename(to.vectors_folder)


async def exchange_at_server(deployment: Deployment, to: Deployment) -> None:
    """Put a generation's collections in the place of the live ones, in one step.

    The live ones become the former ones.

    Raises:
        VectorsUnavailable: the live collections are unchanged.
    """
    from mnemon_infra.vectors.collections import exchange
    from mnemon_infra.vectors.server import connected

    former = of_generation(deployment, "former").database_schema
    assert deployment.qdrant_url, "there is a server"
    async with connected(deployment.qdrant_url, deployment.qdrant_api_key) as client:
        await exchange(client, deployment.database_schema, to.database_schema, former)


def exchange_at_rest(deployment: Deployment, to: Deployment) -> None:
    """Put a generation's folder in the place of the live one; no process may have the live one open.

    Raises:
        VectorsInUse: a process has it open.
    """
    assert deployment.vectors_folder, "they are in a folder"
    assert to.vectors_folder, "beside it"
    with alone_in(deployment.vectors_folder):
        exchange(deployment.vectors_folder, to.vectors_folder)


def is_held(deployment: Deployment) -> bool:
    """Return whether a process has the live folder open, this one included; False for a server."""
    folder = deployment.vectors_folder
    if deployment.qdrant_url or folder is None or not folder.exists():
        return False
    try:
        with alone_in(folder):
            return False
    except VectorsInUse:
        return True


def settle_exchange(deployment: Deployment) -> None:
    """Complete or roll back an interrupted swap of folders; no other process may be swapping them."""
    if deployment.vectors_folder and not deployment.qdrant_url:
        settle(deployment.vectors_folder)


async def made_by_of(deployment: Deployment) -> MadeBy | None:
    """Return the model that made the existing vectors; None if it is not recorded.

    Raises:
        VectorsUnavailable: the server does not answer.
    """
    if deployment.qdrant_url:
        from mnemon_infra.vectors.collections import made_by
        from mnemon_infra.vectors.server import connected

        async with connected(deployment.qdrant_url, deployment.qdrant_api_key) as client:
            return await made_by(client, deployment.database_schema)
    folder = deployment.vectors_folder
    if folder is None or not (folder / RECORD).exists():
        return None
    return MadeBy.read((folder / RECORD).read_text(encoding="utf-8"))


def bytes_of(deployment: Deployment) -> int | None:
    """Return the bytes of the vectors on this disk; None if they are not in a folder."""
    folder = deployment.vectors_folder
    if deployment.qdrant_url or folder is None or not folder.exists():
        return None
    return sum(map(_on_disk, folder.rglob("*")))


def _on_disk(path: Path) -> int:
    try:
        return path.stat().st_blocks * _BLOCK
    except FileNotFoundError:  # deleted since it was listed
        return 0
