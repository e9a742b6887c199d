"""Vectors of generations: their places, opening, renaming, swap and removal.

With the embedded engine, a generation is a folder beside the live one; on a Qdrant server, it is a set of
collections.
"""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from mnemon_infra.config import Deployment
from mnemon_infra.generation_names import GenerationKind, name_generation
from mnemon_infra.vectors.edge.engine import lock_vectors
from mnemon_infra.vectors.edge.folder_swap import settle_swap, swap_folders
from mnemon_infra.vectors.embedding_metadata import RECORD, EmbeddingMetadata
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.port import VectorsInUse, VectorsNotMade, VectorsOutdated, VectorStore

_BLOCK: Final = 512
"""Bytes of a unit of `st_blocks`, which leaves out the holes of sparse files."""


def locate_generation(deployment: Deployment, kind: GenerationKind, up_to: int | None = None) -> Deployment:
    """Return a copy of the deployment with the schema and the vectors folder of a generation.

    `up_to` is the last log position of a generation of the kind `as of`.

    Raises:
        NameTooLong: the live generation's name is too long for a suffix.
    """
    own: dict[str, object] = {"database_schema": name_generation(deployment.database_schema, kind, up_to)}
    if folder := deployment.vectors_folder:
        own["vectors_folder"] = folder.with_name(name_generation(folder.name, kind, up_to))
    return deployment.model_copy(update=own)


@asynccontextmanager
async def open_vectors_as_of(
    deployment: Deployment, position: int, *, model: str, dimension: int | None
) -> AsyncIterator[VectorStore]:
    """Open the vectors as of a former log position for searches. A process may open them many times.

    `model` names provider and model of the embedder. Without an embedder, `dimension` is None.

    Raises:
        VectorsNotMade: the generation as of this position has no vectors.
        VectorsOutdated: another model made the vectors, or their model is not recorded.
        VectorsInUse, VectorsUnavailable, VectorsNotConfigured: as in `open_vectors`.
    """
    generation = locate_generation(deployment, "as of", position)
    if not await has_vectors(generation):
        raise VectorsNotMade(
            f"no vectors exist as of position {position}: run `mnemon rebuild --until {position}`"
        )
    async with AsyncExitStack() as ends:
        try:
            vectors = await ends.enter_async_context(
                open_vectors(generation, model=model, dimension=dimension)
            )
        except VectorsOutdated as error:
            # `mnemon reindex`, which the error names, makes the live vectors only.
            raise VectorsOutdated(
                f"another or an unknown embedding model made the vectors as of position {position}, and "
                f"searches use {model}: run `mnemon rebuild --until {position}`"
            ) from error
        yield vectors


async def has_vectors(deployment: Deployment) -> bool:
    """Return whether a deployment, or a generation of it, has vectors."""
    if deployment.qdrant_url:
        from mnemon_infra.vectors import collections
        from mnemon_infra.vectors.server import open_client

        async with open_client(deployment) as client:
            return await collections.has_collections(client, deployment.database_schema)
    folder = deployment.vectors_folder
    return folder is not None and (folder / RECORD).exists()


async def drop_generation(deployment: Deployment) -> None:
    """Remove the vectors of a generation that is not live.

    With the embedded engine, a process that has the folder open can still read them.
    """
    if deployment.qdrant_url:
        from mnemon_infra.vectors.collections import drop_collections
        from mnemon_infra.vectors.server import open_client

        async with open_client(deployment) as client:
            await drop_collections(client, deployment.database_schema)
    elif deployment.vectors_folder:
        shutil.rmtree(deployment.vectors_folder, ignore_errors=True)


async def rename_generation(deployment: Deployment, to: Deployment) -> None:
    """Rename the vectors of `deployment`, a generation that is not live, to the name in `to`.

    The new name must be free.
    """
    if deployment.qdrant_url:
        from mnemon_infra.vectors.collections import rename_collections
        from mnemon_infra.vectors.server import open_client

        async with open_client(deployment) as client:
            await rename_collections(client, deployment.database_schema, to.database_schema)
    elif deployment.vectors_folder and to.vectors_folder:
        deployment.vectors_folder.rename(to.vectors_folder)


async def swap_server_collections(deployment: Deployment, to: Deployment) -> None:
    """Swap the live collections of `deployment` with those of the generation `to`, in one step.

    The live collections become the former ones.

    Raises:
        VectorsUnavailable: the server does not answer; it may have made the swap.
        NameTooLong: the live generation's name is too long for the suffix of the former generation.
    """
    from mnemon_infra.vectors.collections import swap_collections
    from mnemon_infra.vectors.server import open_client

    former = locate_generation(deployment, "former").database_schema
    assert deployment.qdrant_url, "the deployment has no Qdrant server"
    async with open_client(deployment) as client:
        await swap_collections(client, deployment.database_schema, to.database_schema, former)


def swap_closed_folder(deployment: Deployment, to: Deployment) -> None:
    """Swap the live folder of `deployment` with that of the generation `to`.

    The live folder becomes the former one. No process may have it open.

    Raises:
        VectorsInUse: a process has the live folder open.
    """
    assert deployment.vectors_folder, "the deployment has no folder of vectors"
    assert to.vectors_folder, "the generation has no folder of vectors"
    with lock_vectors(deployment.vectors_folder):
        swap_folders(deployment.vectors_folder, to.vectors_folder)


def is_folder_open(deployment: Deployment) -> bool:
    """Return whether a process has the live folder open, this one included; False for a server."""
    folder = deployment.vectors_folder
    if deployment.qdrant_url or folder is None or not folder.exists():
        return False
    try:
        with lock_vectors(folder):
            return False
    except VectorsInUse:
        return True


def settle_folder_swap(deployment: Deployment) -> None:
    """Complete or roll back an interrupted swap of folders. Call this while no process swaps the folders."""
    if deployment.vectors_folder and not deployment.qdrant_url:
        settle_swap(deployment.vectors_folder)


async def read_model_record(deployment: Deployment) -> EmbeddingMetadata | None:
    """Return the model that made the existing vectors; None if there are none, or no readable record."""
    if deployment.qdrant_url:
        from mnemon_infra.vectors.collections import read_model
        from mnemon_infra.vectors.server import open_client

        async with open_client(deployment) as client:
            return await read_model(client, deployment.database_schema)
    folder = deployment.vectors_folder
    if folder is None or not (folder / RECORD).exists():
        return None
    return EmbeddingMetadata.parse((folder / RECORD).read_text(encoding="utf-8"))


def measure_bytes(deployment: Deployment) -> int | None:
    """Return the bytes that the vectors take up on this disk; None if they are not in a folder."""
    folder = deployment.vectors_folder
    if deployment.qdrant_url or folder is None or not folder.exists():
        return None
    return sum(map(_measure_file, folder.rglob("*")))


def _measure_file(path: Path) -> int:
    try:
        return path.stat().st_blocks * _BLOCK
    except FileNotFoundError:  # deleted since it was listed
        return 0
