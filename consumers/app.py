"""Runs consumers: any of them, in any number of processes."""

import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from consumers.persist import handler as persist
from consumers.retrieve import handler as retrieve
from infra.broker.connect import BrokerUnreachable, check
from infra.config import Deployment
from infra.database.engine import Database

log = structlog.get_logger("app")

CONSUMERS: tuple[str, ...] = ("persist", "retrieve")
"""The names that `mnemon run` and `mnemon up --only` take."""

_CONSUMING = {"persist": persist.consuming, "retrieve": retrieve.consuming}


@asynccontextmanager
async def running(names: Sequence[str], deployment: Deployment) -> AsyncIterator[None]:
    """Run consumers as long as the block lasts. On enter they are subscribed, and the server knows it.

    On exit each finishes the batch in hand.

    Raises:
        BrokerUnreachable: no NATS server answers.
        DatabaseUnavailable: the database does not answer.
        DatabaseNotConfigured: there is no address of a database.
        infra.settings.bucket.SettingsNotProvisioned: the streams and buckets are not there.
    """
    if deployment.nats_url is None:
        raise BrokerUnreachable("no NATS server is configured: set MNEMON_NATS_URL")
    await check(deployment.nats_url)
    database = Database(deployment, name=f"mnemon-{'-'.join(names)}")
    async with AsyncExitStack() as ends:
        ends.push_async_callback(database.close)
        await database.open()
        for name in names:
            await ends.enter_async_context(_CONSUMING[name](database, deployment))
        # What is loaded by now stays: each search through it for garbage would hold up requests for 50 ms.
        gc.freeze()
        log.info("consumers are ready", consumers=list(names))
        yield
