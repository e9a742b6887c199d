"""Vectors of a temporary run: on the Qdrant server of the environment, or embedded in the run's folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, NamedTuple
from uuid import uuid4

from mnemon_infra.config import Deployment


class TemporaryVectors(NamedTuple):
    """Vector store of a temporary run.

    Attributes:
        engine: name and version of the vector store, such as `qdrant 1.19.0` or `edge 0.9.0`.
        configuration: values for the run's `Deployment`; empty for Qdrant Edge.
    """

    engine: str
    configuration: dict[str, Any]


@asynccontextmanager
async def reserve_vectors(named: Deployment, purpose: str) -> AsyncIterator[TemporaryVectors]:
    """Choose the vector store of a temporary run, and drop the run's collections at the end of the block.

    If the environment names a Qdrant server, the run uses it, even in production: the names of the run's
    collections begin with a unique prefix, and no others are read or written.

    Args:
        named: the deployment as the environment variables describe it.
        purpose: first part of the collections' names.

    Raises:
        VectorsUnavailable: the server does not answer. At the end of the block, this leaves the collections
            on the server.
    """
    if not named.qdrant_url:
        yield TemporaryVectors(f"edge {version('qdrant-edge-py')}", {})
        return
    # Imported on use: qdrant-client takes a second.
    from mnemon_infra.vectors.collections import drop_all_generations
    from mnemon_infra.vectors.server import open_client, read_version

    engine = f"qdrant {await read_version(named)}"
    schema = f"{purpose}_{uuid4().hex[:12]}"
    try:
        yield TemporaryVectors(
            engine,
            {
                "qdrant_url": named.qdrant_url,
                "qdrant_grpc_port": named.qdrant_grpc_port,
                "qdrant_api_key": named.qdrant_api_key,
                "qdrant_ca": named.qdrant_ca,
                "database_schema": schema,
            },
        )
    finally:
        async with open_client(named) as client:
            await drop_all_generations(client, schema)
