"""State of the work for language models: windows, batches, spent budgets and failing models."""

import asyncio
from datetime import UTC, datetime

import nats.errors
from nats.aio.client import Client
from pydantic import BaseModel, ConfigDict

from mnemon.operations.health.failing_models import (
    FailingModelState,
    GivenUpState,
    count_given_up,
    find_failing_models,
)
from mnemon_consumers.domain.spending.usage import find_exhausted_budgets
from mnemon_infra.broker.connection import BrokerUnreachable, connect_deployment
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.windows.backlog import Backlog, load_backlog, load_tenant_backlogs
from mnemon_infra.database.windows.spending import sum_spending_by_tenant
from mnemon_infra.settings.bucket import SettingsNotProvisioned
from mnemon_infra.settings.store import LiveSettings

_EXAMINATION_TIMEOUT = 5.0
"""Maximum time, in seconds, for the whole examination."""


class _FrozenModelState(BaseModel):
    model_config = ConfigDict(frozen=True)


class WindowsState(_FrozenModelState):
    """Numbers of windows of `extract`, by state."""

    due: int = 0
    """Windows that wait for a batch or an online request."""
    later: int = 0
    """Windows that failed and wait for the next attempt."""
    in_batches: int = 0
    """Unanswered windows in open batches."""
    dead_today: int = 0
    """Number of times today (UTC) that a window was given up, also if its dead letter is gone by now."""


class BatchesState(_FrozenModelState):
    """Unfinished batches in one state: their number, their lines, and the age of the oldest in seconds."""

    state: str
    batches: int
    lines: int
    age_seconds: float


class OutOfBudgetState(_FrozenModelState):
    """A tenant that has spent its budget of today (UTC); amounts are in US dollars."""

    tenant: str
    usd: float
    usd_per_day: float


class ModelsState(_FrozenModelState):
    """Work for language models; `error` is set, and the rest empty, if the state cannot be read."""

    error: str | None = None
    windows: WindowsState = WindowsState()
    batches: tuple[BatchesState, ...] = ()
    out_of_budget: tuple[OutOfBudgetState, ...] = ()
    failing: tuple[FailingModelState, ...] = ()
    given_up: tuple[GivenUpState, ...] = ()


async def examine_models(deployment: Deployment) -> ModelsState:
    """Return the state of the work of `extract` and `compact`, with `error` if a server does not answer."""
    try:
        async with asyncio.timeout(_EXAMINATION_TIMEOUT):
            async with await connect_deployment(deployment, name="mnemon-status") as connection:
                return await _load_state(connection, deployment)
    except (BrokerUnreachable, DatabaseUnavailable, SettingsNotProvisioned, nats.errors.Error) as error:
        return ModelsState(error=str(error))
    except TimeoutError:
        return ModelsState(error=f"no answer within {_EXAMINATION_TIMEOUT:.0f} s; check NATS and PostgreSQL")


async def _load_state(connection: Client, deployment: Deployment) -> ModelsState:
    settings = LiveSettings()
    now = datetime.now(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    async with settings.watch_bucket(connection), Database(deployment, name="mnemon-status") as database:
        in_hand = await database.run_query(load_backlog(now, midnight))
        spent = await database.run_query(sum_spending_by_tenant(midnight))
        tenants = {
            *settings.list_tenants(),
            *(each.tenant for each in await database.run_query(load_tenant_backlogs(now))),
        }
        failing = await find_failing_models(connection, tenants, settings.get_settings, settings.value)
    broke = find_exhausted_budgets(
        spent, settings.list_tenants(), lambda tenant: settings.get_settings(tenant).spending
    )
    return ModelsState(
        windows=WindowsState(
            due=in_hand.due, later=in_hand.later, in_batches=in_hand.in_batches, dead_today=in_hand.dead
        ),
        batches=_list_batches(in_hand),
        out_of_budget=tuple(OutOfBudgetState(**each._asdict()) for each in broke),
        failing=failing,
        given_up=await count_given_up(connection),
    )


def _list_batches(in_hand: Backlog) -> tuple[BatchesState, ...]:
    return tuple(
        BatchesState(
            state=each.state, batches=each.batches, lines=each.lines, age_seconds=each.age.total_seconds()
        )
        for each in in_hand.batches
    )
