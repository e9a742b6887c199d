"""What language models are about to do, and for whom they may not."""

import asyncio
from datetime import UTC, datetime

import nats.errors
from nats.aio.client import Client
from pydantic import BaseModel, ConfigDict

from mnemon.operations.health.failing_models import FailingModelState, GivenUpState, failing_models, given_up
from mnemon_consumers.domain.spending.usage import out_of_budget
from mnemon_infra.broker.connection import BrokerUnreachable, connect
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.windows.backlog import Backlog, backlog, by_tenant
from mnemon_infra.database.windows.spending import spent_by_tenant
from mnemon_infra.settings.bucket import SettingsNotProvisioned
from mnemon_infra.settings.store import LiveSettings

_PATIENCE = 5.0
"""Seconds for all of it."""


class _ModelProblem(BaseModel):
    model_config = ConfigDict(frozen=True)


class WindowsState(_ModelProblem):
    """Stretches of conversations that are to be read for facts."""

    due: int = 0
    later: int = 0
    """They failed, and wait to be tried again."""
    in_batches: int = 0
    dead_today: int = 0
    """Nobody could read them; there is a dead letter of each."""


class BatchesState(_ModelProblem):
    """Batches of one state that are not over; the age is that of the oldest."""

    state: str
    batches: int
    lines: int
    age_seconds: float


class OutOfBudgetState(_ModelProblem):
    """A tenant that has spent what it may today (UTC), in US dollars."""

    tenant: str
    usd: float
    usd_per_day: float


class ModelsState(_ModelProblem):
    """All of it; `error` is set when it cannot be seen, and the rest is empty."""

    error: str | None = None
    windows: WindowsState = WindowsState()
    batches: tuple[BatchesState, ...] = ()
    out_of_budget: tuple[OutOfBudgetState, ...] = ()
    failing: tuple[FailingModelState, ...] = ()
    given_up: tuple[GivenUpState, ...] = ()


async def examine_models(deployment: Deployment) -> ModelsState:
    """Look at what `extract` and `compact` have in hand; what does not answer is part of the finding."""
    try:
        async with asyncio.timeout(_PATIENCE):
            async with await connect(str(deployment.nats_url), name="mnemon-status") as connection:
                return await _found(connection, deployment)
    except (BrokerUnreachable, DatabaseUnavailable, SettingsNotProvisioned, nats.errors.Error) as error:
        return ModelsState(error=str(error))
    except TimeoutError:
        return ModelsState(error="time out")


async def _found(connection: Client, deployment: Deployment) -> ModelsState:
    settings = LiveSettings()
    now = datetime.now(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    async with settings.watched(connection), Database(deployment, name="mnemon-status") as database:
        in_hand = await database.read(backlog(now, midnight))
        spent = await database.read(spent_by_tenant(midnight))
        tenants = {*settings.tenants(), *(each.tenant for each in await database.read(by_tenant(now)))}
        failing = await failing_models(connection, tenants, settings.of, settings.value)
    broke = out_of_budget(spent, settings.tenants(), lambda tenant: settings.of(tenant).spending)
    return ModelsState(
        windows=WindowsState(
            due=in_hand.due, later=in_hand.later, in_batches=in_hand.in_batches, dead_today=in_hand.dead
        ),
        batches=_batches(in_hand),
        out_of_budget=tuple(OutOfBudgetState(**each._asdict()) for each in broke),
        failing=failing,
        given_up=await given_up(connection),
    )


def _batches(in_hand: Backlog) -> tuple[BatchesState, ...]:
    return tuple(
        BatchesState(
            state=each.state, batches=each.batches, lines=each.lines, age_seconds=each.age.total_seconds()
        )
        for each in in_hand.batches
    )
