"""Vectors of the tests: on the Qdrant server at `MNEMON_QDRANT_URL`, or without it in the embedded engine.

Each deployment of a test has its own schema, and the names of its collections begin with the schema's name.
"""

import os
import shutil
from collections.abc import Set as AbstractSet
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest
from nats.aio.client import Client

from mnemon_infra.config import Deployment
from mnemon_infra.vectors.edge.owner import EdgeOwner
from mnemon_infra.vectors.port import Collection

URL: Final = os.environ.get("MNEMON_QDRANT_URL") or None
"""Address of the server. It is read on import, because a fixture removes the variable from the tests'
environment.
"""

STORAGE: Final = os.environ.get("MNEMON_QDRANT_STORAGE") or None
"""Folder of the server's storage, if it is on this machine; None otherwise."""

requires_folder: Final = pytest.mark.skipif(
    URL is not None,
    reason="the test is about files of the embedded engine; vectors are on a server",
)

requires_storage: Final = pytest.mark.skipif(
    URL is not None and STORAGE is None, reason="MNEMON_QDRANT_STORAGE does not name the server's storage"
)

_reserved: set[str] = set()


def locate_vectors(deployment: Deployment, folder: Path) -> Deployment:
    """Return the deployment with vectors on the server if there is one, else in the folder."""
    if URL is None:
        return deployment.model_copy(update={"vectors_folder": folder})
    _reserved.add(deployment.database_schema)
    return deployment.model_copy(update={"qdrant_url": URL})


def stack_schema(data: Path) -> str:
    """Return the schema of the stack in a folder: `mnemon`, or a unique one with vectors on the server."""
    return "mnemon" if URL is None else f"test_{sha256(str(data).encode()).hexdigest()[:12]}"


def stack_environment(data: Path) -> dict[str, str]:
    """Return the variables with which the stack in a folder reaches the server; empty without a server."""
    if URL is None:
        return {}
    _reserved.add(stack_schema(data))
    return {"MNEMON_QDRANT_URL": URL, "MNEMON_DATABASE_SCHEMA": stack_schema(data)}


def list_vector_files(deployment: Deployment) -> list[Path]:
    """Return the files of a deployment's vectors, in its folder or in the server's storage."""
    if deployment.qdrant_url is None:
        assert deployment.vectors_folder
        return [path for path in deployment.vectors_folder.rglob("*") if path.is_file()]
    assert STORAGE
    own = (Path(STORAGE) / "collections").glob(f"{deployment.database_schema}_*")
    return [path for collection in own for path in collection.rglob("*") if path.is_file()]


async def count_live_points(connection: Client, deployment: Deployment) -> dict[str, int]:
    """Return the number of points in each collection of a running deployment, by name."""
    if deployment.qdrant_url is None:
        return dict(await EdgeOwner(connection).count_points())
    from mnemon_infra.vectors.server import QdrantServer, open_client

    async with open_client(deployment) as client:
        vectors = QdrantServer(client, deployment.database_schema)
        return {each.value: await vectors.count(each) for each in Collection}


async def lose_collection(deployment: Deployment, collection: Collection) -> None:
    """Delete a collection without mnemon's knowledge: on the server, or its folder on the disk."""
    if deployment.qdrant_url is None:
        assert deployment.vectors_folder
        shutil.rmtree(deployment.vectors_folder / collection)
        return
    from mnemon_infra.vectors.server import build_alias, open_client

    async with open_client(deployment) as client:
        shown = build_alias(deployment.database_schema, collection)
        aliases = (await client.get_aliases()).aliases
        (name,) = [each.collection_name for each in aliases if each.alias_name == shown]
        await client.delete_collection(name)


def list_reserved() -> set[str]:
    """Return the schemas of this process that may have collections on the server."""
    return set(_reserved)


def drop_reserved(schemas: AbstractSet[str]) -> None:
    """Delete the collections of these schemas, and of their generations, from the server.

    Schemas that are not reserved, see `list_reserved`, are skipped.
    """
    dropped = _reserved & schemas
    if not dropped:
        return
    from qdrant_client import QdrantClient

    _reserved.difference_update(dropped)
    client = QdrantClient(url=URL, timeout=60, check_compatibility=False)
    try:
        for each in client.get_collections().collections:
            if each.name.startswith(tuple(f"{schema}_" for schema in dropped)):
                client.delete_collection(each.name)
    finally:
        client.close()
