"""The cost of model calls, from the log to the rest of a tenant's budget."""

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mnemon_consumers.domain.spending.budget import CACHED_TENANTS, Budgets
from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Spending
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.database.windows.spending import (
    MOST_USD,
    CallTotals,
    load_usage,
    sum_spending,
    sum_spending_by_tenant,
)
from mnemon_infra.delivery import Delivery
from mnemon_infra.settings.store import LiveSettings
from tests.support.hypothesis_profiles import scale_examples

MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Call:
    """A model call, as the log records it."""

    seq: int
    id: str
    at: datetime = MIDNIGHT
    tenant: str = "acme"
    user: str = "u1"
    purpose: str = "extract"
    model: str = "m"
    batch_id: str | None = None
    tokens: tuple[int, int, int] = (10, 4, 2)
    usd: float | None = 0.25

    def delivery(self) -> Delivery:
        event = {
            "provider": "openai",
            "model": self.model,
            "purpose": self.purpose,
            "tokens": dict(zip(("input", "cached", "output"), self.tokens, strict=True)),
            "batch_id": self.batch_id,
            "usd": self.usd,
        }
        subject = build_memory_subject(self.tenant, self.user, "model.called")
        body = json.dumps(event).encode()
        return Delivery(subject, body, self.id, "LOG", self.seq, 1, self.at.timestamp())


def summed(calls: Iterable[Call], since: datetime, until: datetime) -> list[CallTotals]:
    """Return the expected totals, computed in plain Python: of equal ids, the first in the log counts."""
    first: dict[tuple[str, str, str], Call] = {}
    for call in sorted(calls, key=lambda call: call.seq):
        first.setdefault((call.tenant, call.user, call.id), call)
    groups = defaultdict(list)
    for call in first.values():
        if since <= call.at < until:
            in_batch = call.batch_id is not None
            common = (call.tenant, call.purpose, call.at.date(), "openai", call.model, in_batch)
            groups[common].append(call)
    return sorted(
        CallTotals(
            *common,
            calls=len(group),
            unpriced=sum(call.usd is None for call in group),
            input=sum(call.tokens[0] for call in group),
            cached=sum(call.tokens[1] for call in group),
            output=sum(call.tokens[2] for call in group),
            usd=sum(call.usd or 0 for call in group),
        )
        for common, group in groups.items()
    )


CALLS = st.builds(
    Call,
    seq=st.integers(1, 50),
    id=st.sampled_from(["e1", "e2", "e3", "e4", "e5"]),
    at=st.integers(-30, 30).map(lambda hours: MIDNIGHT + hours * HOUR),
    tenant=st.sampled_from(["acme", "globex"]),
    user=st.sampled_from(["u1", "u2"]),
    purpose=st.sampled_from(["extract", "compact"]),
    model=st.sampled_from(["m", "n"]),
    batch_id=st.sampled_from([None, "b1", "b2"]),
    tokens=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    usd=st.none() | st.integers(0, 8).map(lambda eighths: eighths / 8),
)


@settings(max_examples=scale_examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=st.lists(CALLS, unique_by=lambda call: call.seq), seed=st.integers(0, 2**32))
async def test_spending_is_equal_in_any_order_batches_and_copies(
    database: Database, log: list[Call], seed: int
) -> None:
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM model_calls")
    chance = random.Random(seed)
    copies = [call for call in log for _ in range(chance.choice([1, 1, 2]))]
    chance.shuffle(copies)
    while copies:
        size = chance.randint(1, 6)
        await write_rows(database, plan_batch([call.delivery() for call in copies[:size]]).rows)
        copies = copies[size:]
    since, until = MIDNIGHT - 17 * HOUR, (MIDNIGHT + 23 * HOUR).astimezone(timezone(7 * HOUR))
    expected = summed(log, since, until)
    assert await database.run_query(load_usage(None, since, until)) == expected
    for tenant in ("acme", "globex"):
        own = [calls for calls in expected if calls.tenant == tenant]
        assert await database.run_query(load_usage(tenant, since, until)) == own
    ever = summed(log, since, MIDNIGHT + 99 * HOUR)
    totals = {tenant: sum(each.usd for each in ever if each.tenant == tenant) for tenant, *_ in ever}
    assert await database.run_query(sum_spending_by_tenant(since)) == totals
    assert await database.run_query(sum_spending("acme", since)) == totals.get("acme", 0)


async def test_impossible_cost_hides_no_other_cost(database: Database) -> None:
    forged = [Call(seq, f"forged {seq}", usd=1e308, tokens=(2**63 - 1, 0, 2**63 - 1)) for seq in (1, 2)]
    await spend(database, *forged, Call(3, "theirs", tenant="globex"))
    since, until = MIDNIGHT, MIDNIGHT + HOUR
    acme, globex = await database.run_query(load_usage(None, since, until))
    assert (acme.usd, globex.usd) == (2 * MOST_USD, 0.25)
    assert await database.run_query(sum_spending_by_tenant(since)) == {"acme": 2 * MOST_USD, "globex": 0.25}
    assert await database.run_query(sum_spending("acme", since)) == 2 * MOST_USD


class CalendarClock:
    """A clock that moves only when a test sets `now`."""

    def __init__(self) -> None:
        self.now = MIDNIGHT + 12 * HOUR

    def __call__(self) -> datetime:
        return self.now


def limited(usd_per_day: float | None) -> LiveSettings:
    live = LiveSettings()
    live.value = SettingsV1(spending=Spending(usd_per_day=usd_per_day))
    return live


@pytest.fixture
def nowhere() -> Database:
    """Return a database that does not answer."""
    return Database(Deployment(database_dsn="postgresql://127.0.0.1:1/x"))


async def spend(database: Database, *calls: Call) -> None:
    await write_rows(database, plan_batch([call.delivery() for call in calls]).rows)


async def test_budget_left_is_the_limit_minus_spending_of_today(database: Database) -> None:
    clock = CalendarClock()
    yesterday = Call(1, "e1", MIDNIGHT - timedelta(microseconds=1), usd=100)
    await spend(database, yesterday, Call(2, "e2", usd=0.5), Call(3, "e3", tenant="globex", usd=1))
    budgets = Budgets(database, limited(1.0), clock)
    assert await budgets.has_budget("acme")
    assert not await budgets.has_budget("globex")
    assert await budgets.has_budget("who has asked nothing")

    await spend(database, Call(4, "e4", user="u2", usd=0.5))
    clock.now += CACHED_TENANTS - timedelta(microseconds=1)
    assert await budgets.has_budget("acme"), "the database is not asked all the time"
    clock.now += timedelta(microseconds=1)
    assert not await budgets.has_budget("acme")

    clock.now = MIDNIGHT + 24 * HOUR
    assert await budgets.has_budget("acme")
    assert await budgets.has_budget("globex")


async def test_own_spending_counts_at_once_and_once(database: Database) -> None:
    clock = CalendarClock()
    budgets = Budgets(database, limited(1.0), clock)
    assert await budgets.has_budget("acme")
    budgets.record_spending("acme", 0.75)
    budgets.record_spending("acme", None)
    assert await budgets.has_budget("acme")
    # `persist` does not store the calls within an hour.
    clock.now += HOUR
    assert await budgets.has_budget("acme")
    budgets.record_spending("acme", 0.25)
    assert not await budgets.has_budget("acme")
    assert await budgets.has_budget("globex")
    await spend(database, Call(1, "e1", usd=0.75))
    limit_above_both = Budgets(database, limited(1.5), clock)
    limit_above_both.record_spending("acme", 0.75)
    assert await limit_above_both.has_budget("acme"), "what the database has by now is not counted again"


async def test_changed_limit_applies_at_once(database: Database) -> None:
    await spend(database, Call(1, "e1", usd=2))
    live = limited(1.0)
    budgets = Budgets(database, live, CalendarClock())
    assert not await budgets.has_budget("acme")
    live.value = limited(3.0).value
    assert await budgets.has_budget("acme")
    live.value = limited(0).value
    assert not await budgets.has_budget("acme")
    live.value = limited(None).value
    assert await budgets.has_budget("acme")


async def test_spent_budget_is_logged_once_a_day(database: Database) -> None:
    await spend(database, Call(1, "e1", usd=2))
    clock = CalendarClock()
    budgets = Budgets(database, limited(1.0), clock)
    with capture_logs() as logs:
        assert not any(await asyncio.gather(*(budgets.has_budget("acme") for _ in range(20))))
        clock.now += HOUR
        assert not await budgets.has_budget("acme")
    assert [(each["log_level"], each["tenant"], each["usd"]) for each in logs] == [("warning", "acme", 2.0)]
    clock.now += 24 * HOUR
    await spend(database, Call(2, "e2", clock.now, usd=2))
    with capture_logs() as logs:
        for _ in range(3):
            assert not await budgets.has_budget("acme")
    assert [each["tenant"] for each in logs] == ["acme"]


async def test_budget_without_database_is_unknown(nowhere: Database) -> None:
    assert await Budgets(nowhere, limited(None)).has_budget("acme"), "without a limit it is not asked"
    budgets = Budgets(nowhere, limited(1.0))
    for _ in range(2):
        ends = await asyncio.gather(*(budgets.has_budget("acme") for _ in range(20)), return_exceptions=True)
        assert {type(end) for end in ends} == {DatabaseUnavailable}
