"""Change of the embedding model: its consequences, and the removal of vectors if no model is set."""

from collections.abc import Awaitable, Callable

from nats.aio.client import Client

from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.provisioning.topology import reset_durable
from mnemon_infra.config import Deployment
from mnemon_infra.settings.effective import read_effective_settings
from mnemon_infra.vectors.engines import open_vectors, reset_vectors
from mnemon_infra.vectors.port import VectorsOutdated


async def read_embedding(connection: Client) -> Embedding:
    """Return the embedding model that the settings name.

    Raises:
        mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
        nats.errors.Error: the server does not answer.
    """
    values = (await read_effective_settings(connection, None)).values
    return Embedding(provider=values["embedding.provider"], model=values["embedding.model"])


def describe_consequences(before: Embedding, after: Embedding) -> str | None:
    """Return the steps that a change of the embedding model requires, as text; None if nothing changed."""
    if before == after:
        return None
    # A process may use another model than `before`: the settings may have changed twice since its start.
    goes_on = "Running processes continue with the model that they started with. "
    back = f"embedding.provider={before.provider} embedding.model={before.model or 'null'}"
    if after.provider == "none":
        return (
            f"{goes_on}The next `mnemon up` indexes the log again, without a model; searches then use words "
            "only. On your own servers, stop the consumers and run `mnemon reindex`. For the stack of a "
            f"folder, add --data DIR to `up` and `settings set`. To undo: mnemon settings set {back}"
        )
    return (
        f"{goes_on}If the vectors are made by a model other than {_name_model(after)}, the processes "
        "cannot restart: stop the processes, run `mnemon reindex` and start the processes; `index` then "
        "embeds everything again. "
        "For the stack of a folder, add --data DIR to `reindex` and `settings set`. "
        f"To undo: mnemon settings set {back}"
    )


async def apply_change(
    connection: Client, change_settings: Callable[[], Awaitable[int | None]]
) -> tuple[int | None, str | None]:
    """Change settings by `change_settings`, which returns the new revision, or None. Its errors propagate.

    Returns:
        The new revision, or None if nothing changed; and the steps that a change of the embedding model
        requires, or None.

    Raises:
        mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
        nats.errors.Error: the server does not answer.
    """
    before = await read_embedding(connection)
    revision = await change_settings()
    return revision, describe_consequences(before, await read_embedding(connection))


async def drop_embeddings(deployment: Deployment) -> int | None:
    """Remove all vectors if the settings no longer name an embedding model.

    `index` then indexes the log again, for search by words only. The errors of
    `mnemon_infra.vectors.engines.open_vectors` propagate, except `VectorsOutdated`.

    Returns:
        The number of events of the log that `index` has to read again; None if no change was necessary.

    Raises:
        mnemon_infra.broker.connection.BrokerUnreachable: no server is configured, or none answers.
        mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
        LogTooNew, RestoreUnfinished, TooFewServers: `index` cannot be reset now, see
            `mnemon_infra.broker.provisioning.topology.reset_durable`.
        nats.errors.Error: the server stops answering.
    """
    async with await connect_deployment(deployment, name="mnemon-up") as connection:
        if (await read_embedding(connection)).provider != "none":
            return None
        try:
            async with open_vectors(deployment, model="none", dimension=None):
                return None
        except VectorsOutdated:
            # Reset the durable first: after an interruption, `index` has too many events to read, not too
            # few.
            events = await reset_durable(connection, "LOG", "index")
            await reset_vectors(deployment)
            return events


def _name_model(embedding: Embedding) -> str:
    return f"{embedding.provider}/{embedding.model}" if embedding.model else embedding.provider
