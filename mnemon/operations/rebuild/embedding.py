"""Embedding model of a generation: the model that made its vectors; the settings may name another one."""

import asyncio
import time
from typing import Final

from mnemon_contracts.settings.groups import Embedding
from mnemon_contracts.streams import LOG
from mnemon_infra.config import Deployment
from mnemon_infra.durables import ACK_WAIT
from mnemon_infra.rebuild.generations import RebuildProgress, Site
from mnemon_infra.settings.store import change_settings, read_settings
from mnemon_infra.vectors.embedding_metadata import split_model_name
from mnemon_infra.vectors.generations import is_folder_open, read_model_record

POLL_SECONDS: Final = 0.2
"""Seconds between two checks whether a process requests events."""


async def choose_embedding(site: Site, generation: Deployment) -> Embedding:
    """Return the model that made a generation's vectors; if it is unknown, the model of the settings.

    Raises:
        SettingsNotProvisioned: the bucket of settings does not exist.
        VectorsUnavailable, nats.errors.Error: a server does not answer.
    """
    made_by = await read_model_record(generation)
    settings = (await read_settings(site.connection)).embedding
    if made_by is None:
        return settings
    provider, model = split_model_name(made_by.model)
    return Embedding.model_validate({"provider": provider, "model": model})


async def set_embedding(site: Site, embedding: Embedding) -> None:
    """Write an embedding model to the settings. Processes that embed use it from their next start.

    Raises:
        SettingsContended: other processes keep changing the settings.
        SettingsNotProvisioned: the bucket of settings does not exist.
        nats.errors.Error: the broker does not answer.
    """
    named = embedding.model_dump(mode="json", exclude_none=True)
    await change_settings(site.connection, lambda document: {**document, "embedding": named})


async def is_embedder_running(site: Site, progress: RebuildProgress) -> bool:
    """Return whether a process has the vectors' folder open, or requests events of `index` or `dedupe`.

    Such a process embeds texts: it would write vectors of the former model among those of a new model. While
    all its batches are in work, it requests nothing. So if events are unacknowledged, wait at most `ACK_WAIT`
    seconds for its next request: a killed process also leaves such events.

    Raises:
        nats.errors.Error: the broker does not answer.
    """
    if is_folder_open(site.deployment):
        return True
    context = site.connection.jetstream()
    end: float | None = None
    while True:
        infos = [await context.consumer_info(LOG, name) for name in ("index", "dedupe")]
        if any(each.num_waiting for each in infos):
            return True
        if not any(each.num_ack_pending for each in infos):
            return False
        if end is None:
            end = time.monotonic() + ACK_WAIT
            progress.show_line(
                f"waiting up to {ACK_WAIT:.0f} s, because a process may be handling events of index or dedupe"
            )
        elif time.monotonic() > end:
            return False
        await asyncio.sleep(POLL_SECONDS)
