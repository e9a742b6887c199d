"""Choice of the vector store of a deployment: a Qdrant server, or Qdrant Edge in this process."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mnemon_infra.config import Deployment
from mnemon_infra.models.words import bm25
from mnemon_infra.vectors.edge.engine import lock_vectors, open_edge
from mnemon_infra.vectors.embedding_metadata import RECORD, EmbeddingMetadata
from mnemon_infra.vectors.port import VectorsNotConfigured, VectorStore


@asynccontextmanager
async def open_vectors(
    deployment: Deployment, *, model: str, dimension: int | None
) -> AsyncIterator[VectorStore]:
    """Open the vectors of a deployment, and create them if absent. A process may open them many times.

    A Qdrant server takes precedence over a folder. `model` names provider and model of the embedder. Without
    an embedder, `dimension` is None, and the vectors are sparse only.

    Raises:
        VectorsNotConfigured: neither a server nor a folder is set.
        VectorsInUse: another process has the folder open.
        VectorsOutdated: another model made the existing vectors, or their model is not recorded.
        VectorsUnavailable: the vector store does not answer, its disk is full, or the certificates for the
            server cannot be read.
    """
    made_by = EmbeddingMetadata(model=model, dimension=dimension, terms=bm25.VERSION)
    if deployment.qdrant_url:
        # Imported on use: qdrant-client takes a second.
        from mnemon_infra.vectors.collections import open_collections
        from mnemon_infra.vectors.server import open_client

        async with open_client(deployment) as client:
            yield await open_collections(client, deployment.database_schema, made_by)
    elif deployment.vectors_folder:
        async with open_edge(deployment.vectors_folder, made_by) as vectors:
            yield vectors
    else:
        raise _build_not_configured_error()


async def reset_vectors(deployment: Deployment) -> None:
    """Remove all vectors and the record of their model; all can be rebuilt from the log.

    Raises:
        VectorsNotConfigured: neither a server nor a folder is set.
        VectorsInUse: a process has the folder open, this one included.
        VectorsUnavailable: the server does not answer.
    """
    if deployment.qdrant_url:
        from mnemon_infra.vectors.collections import drop_collections
        from mnemon_infra.vectors.server import open_client

        async with open_client(deployment) as client:
            await drop_collections(client, deployment.database_schema)
    elif deployment.vectors_folder:
        with lock_vectors(deployment.vectors_folder):
            for entry in deployment.vectors_folder.iterdir():
                if entry.is_dir():
                    shutil.rmtree(entry)
            (deployment.vectors_folder / RECORD).unlink(missing_ok=True)
    else:
        raise _build_not_configured_error()


def _build_not_configured_error() -> VectorsNotConfigured:
    return VectorsNotConfigured(
        "no vector store is configured: set MNEMON_QDRANT_URL, or MNEMON_VECTORS_FOLDER to a folder"
    )
