"""`mnemon usage`, and the settings that it applies."""

import json
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_consumers.domain.spending.calls import build_call_event
from mnemon_contracts.events.memory import CallPurpose
from mnemon_contracts.settings.language_models import Price, Spending
from mnemon_infra.broker.streams.applied_position import AppliedPosition
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.port import Usage
from mnemon_infra.settings.store import change_settings
from tests.support.processes.stack import TIMEOUT, CommandResult, mnemon

MILLION = 1_000_000
PRICES = [
    {"model": "gpt-4o-mini", "input": 1.0, "cached": 0.5, "output": 4.0},
    {"model": "claude-haiku-4-5", "input": 2.0, "output": 8.0, "batch": 0.25},
]
SPENDING = Spending(prices=tuple(Price.model_validate(price) for price in PRICES))

Run = Callable[..., Awaitable[CommandResult]]


@pytest.fixture
def run(deployment: Deployment) -> Run:
    async def run(*arguments: str) -> CommandResult:
        return await mnemon(
            *arguments,
            MNEMON_NATS_URL=str(deployment.nats_url),
            DATABASE_URL=str(deployment.database_dsn),
            MNEMON_DATABASE_SCHEMA=deployment.database_schema,
            COLUMNS="200",
        )

    return run


class Asking:
    """Collects calls of models, and publishes the events that `extract` and `compact` write for them."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._events: list[LogEvent] = []

    def ask(
        self,
        usage: Usage,
        tenant: str = "acme",
        model: str = "gpt-4o-mini-2024-07-18",
        purpose: CallPurpose = "extract",
        batch_id: str | None = None,
        provider: str = "openai",
    ) -> None:
        event_id = f"call-{len(self._events)}"
        self._events.append(
            build_call_event((tenant, "u1"), usage, provider, model, purpose, batch_id, SPENDING, event_id)
        )

    async def is_known(self) -> None:
        """Publish the collected events, and wait until `persist` has stored them."""
        stored = await append_events(self._connection, self._events)
        end = stored[-1].seq
        assert await AppliedPosition("persist").wait_for(self._connection.jetstream(), end, TIMEOUT) >= end

    async def set_spending(self, spending: dict[str, Any], tenant: str | None = None) -> None:
        await change_settings(self._connection, lambda present: {**present, "spending": spending}, tenant)


@pytest_asyncio.fixture
async def asking(connection: Client, deployment: Deployment) -> AsyncIterator[Asking]:
    async with run_consumers(("persist",), deployment):
        yield Asking(connection)


async def test_usage_sums_calls_and_costs(run: Run, asking: Asking) -> None:
    asking.ask(Usage(MILLION, 400_000, 100_000))
    asking.ask(Usage(MILLION, 0, 0), batch_id="b1")
    asking.ask(Usage(MILLION, 0, 0), batch_id="b1")
    asking.ask(Usage(MILLION, 0, 0), model="claude-haiku-4-5", provider="anthropic", batch_id="b2")
    asking.ask(Usage(500, 0, 70), tenant="globex", purpose="compact")
    asking.ask(Usage(30, 0, 10), tenant="globex", provider="offline", model="rules")
    await asking.set_spending({"prices": PRICES})
    await asking.is_known()

    found = json.loads((await run("usage", "--by", "day, tenant,purpose,model", "--json")).out)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert datetime.fromisoformat(found["until"]) - datetime.fromisoformat(found["since"]) == timedelta(7)
    assert found["by"] == ["day", "tenant", "purpose", "model"]
    shown = [(row["tenant"], row["purpose"], row["model"], row["calls"]) for row in found["usage"]]
    assert {row["day"] for row in found["usage"]} == {today}
    assert shown == [
        ("acme", "extract", "anthropic/claude-haiku-4-5", 1),
        ("acme", "extract", "openai/gpt-4o-mini-2024-07-18", 3),
        ("globex", "compact", "openai/gpt-4o-mini-2024-07-18", 1),
        ("globex", "extract", "offline/rules", 1),
    ]
    total = found["total"]
    assert (total["calls"], total["batched"], total["unpriced"]) == (6, 3, 0)
    assert (total["input"], total["cached"], total["output"]) == (4_000_530, 400_000, 100_080)
    # Own calls: 0.6 + 0.2 + 0.4; two calls at half of 1; one at a quarter of 2; 500 + 4 * 70 millionths.
    assert total["usd"] == pytest.approx(1.2 + 1 + 0.5 + 0.00078)
    assert total["saved"] == pytest.approx(1 + 1.5)
    assert total["cached_share"] == pytest.approx(400_000 / 4_000_530)
    assert found["unpriced_models"] == found["out_of_budget"] == []

    table = (await run("usage", "--by", "tenant", "--days", "1")).out
    lines = [line.split() for line in table.splitlines()]
    assert lines[0] == ["tenant", "calls", "batched", "input", "cached", "output", "US$"]
    assert lines[1] == ["acme", "4", "3", "4,000,000", "400,000", "100,000", "2.7000"]
    assert lines[2] == ["globex", "2", "0", "530", "0", "80", "0.0008"]
    assert lines[3] == ["total", "6", "3", "4,000,530", "400,000", "100,080", "2.7008"]
    assert f"period        {today} (UTC)" in table
    assert "10% of the input tokens" in table
    assert "2.5000 US$ saved" in table

    own = json.loads((await run("usage", "--tenant", "globex", "--by", "purpose", "--json")).out)
    assert [(row["purpose"], row["calls"]) for row in own["usage"]] == [("compact", 1), ("extract", 1)]


async def test_usage_without_prices_says_how_to_set_them(run: Run, asking: Asking) -> None:
    asking.ask(Usage(1000, 0, 10), model="qwen3:8b")
    asking.ask(Usage(1000, 0, 10), model="it's mine")
    asking.ask(Usage(1000, 0, 10))
    await asking.is_known()
    await asking.set_spending({"prices": PRICES})
    found = json.loads((await run("usage", "--by", "model", "--json")).out)
    assert found["unpriced_models"] == ["it's mine", "qwen3:8b"]
    usd = {row["model"]: row["usd"] for row in found["usage"]}
    assert usd["openai/qwen3:8b"] is None, "nobody knows what it cost"

    told = (await run("usage")).out
    assert "no price      2 calls without a price, not in the cost" in told
    (line,) = (line for line in told.splitlines() if "mnemon settings set" in line)
    done = await run(*shlex.split(line)[1:])
    assert done.code == 0, done
    set_now = json.loads((await run("settings", "get", "spending", "--json")).out)["spending"]["prices"]
    assert [price["model"] for price in set_now] == [
        "gpt-4o-mini",
        "claude-haiku-4-5",
        "it's mine",
        "qwen3:8b",
    ]
    assert set_now[0] == PRICES[0] | {"batch": 0.5}

    told = (await run("usage")).out
    assert "2 calls without a price, not in the cost; a later price does not change that\n" in told
    assert "mnemon settings set" not in told, "each model has a price now"
    found = json.loads((await run("usage", "--json")).out)
    assert found["unpriced_models"] == ["it's mine", "qwen3:8b"]


async def test_usage_proposes_prices_for_the_list_that_a_tenant_has(run: Run, asking: Asking) -> None:
    asking.ask(Usage(1000, 0, 10), model="qwen3:8b")
    await asking.is_known()
    general = {"model": "qwen3:8b", "input": 1.0, "output": 2.0}
    await asking.set_spending({"prices": [general]})
    await asking.set_spending({"prices": [PRICES[0]]}, "acme")
    assert "mnemon settings set" not in (await run("usage")).out, "the general list has the model"

    told = (await run("usage", "--tenant", "acme")).out
    (line,) = (line for line in told.splitlines() if "mnemon settings set" in line)
    assert line.endswith(" --tenant acme")
    done = await run(*shlex.split(line)[1:])
    assert done.code == 0, done
    assert "mnemon settings set" not in (await run("usage", "--tenant", "acme")).out
    shown = json.loads((await run("settings", "get", "spending", "--json")).out)
    assert [price["model"] for price in shown["spending"]["prices"]] == ["qwen3:8b"]


@pytest.mark.long
async def test_usage_names_tenants_out_of_budget(run: Run, asking: Asking) -> None:
    asking.ask(Usage(MILLION, 0, 0))
    asking.ask(Usage(MILLION, 0, 0), tenant="globex")
    asking.ask(Usage(9 * MILLION, 0, 0), tenant="globex", purpose="chat")  # excluded from budgets
    await asking.set_spending({"usd_per_day": 1.0})
    await asking.set_spending({"usd_per_day": 5.0}, "globex")
    await asking.set_spending({"usd_per_day": 0.0}, "initech")
    await asking.is_known()
    found = json.loads((await run("usage", "--json")).out)["out_of_budget"]
    assert found == [
        {"tenant": "acme", "usd": 1.0, "usd_per_day": 1.0},
        {"tenant": "initech", "usd": 0.0, "usd_per_day": 0.0},
    ]
    told = (await run("usage", "--tenant", "acme")).out
    assert "out of budget acme: 1.0000 US$ of 1 spent today" in told
    assert "initech" not in told

    status = json.loads((await run("status", "--json")).out)
    assert status["models"]["out_of_budget"] == found
    assert "out of budget acme: 1.0000 US$ of 1 spent today" in (await run("status")).out


async def test_usage_handles_no_calls_and_invalid_options(run: Run) -> None:
    nothing = await run("usage", "--days", "2")
    assert nothing.code == 0
    assert nothing.out.startswith("no calls of language models, ")
    total = json.loads((await run("usage", "--json")).out)["total"]
    assert (total["calls"], total["usd"], total["cached_share"]) == (0, 0.0, None)
    for arguments, named in (
        (("--by", "colour"), "day, tenant, purpose, model"),
        (("--days", "0"), "--days"),
    ):
        refused = await run("usage", *arguments)
        assert refused.code == 2
        assert named in refused.err


async def test_prices_are_set_and_shown_as_a_list(run: Run) -> None:
    done = await run("settings", "set", f"spending.prices={json.dumps(PRICES)}")
    assert done.code == 0, done
    shown = (await run("settings", "get", "spending")).out
    history = (await run("settings", "history")).out
    for text in (shown, history):
        (line,) = (line for line in text.splitlines() if "gpt-4o-mini" in line)
        assert "claude" not in line, "a line for each"
        assert '"input": 1.0' in line
    wrong = [{"model": "gpt-4o-mini", "input": 1}]
    for value, named in (
        (json.dumps(wrong), "spending.prices.0.output"),
        (json.dumps([*PRICES, PRICES[0]]), f"spending.prices.{len(PRICES)}.model"),
        ("cheap", "spending.prices"),
    ):
        refused = await run("settings", "set", f"spending.prices={value}")
        assert (refused.code, named in refused.err) == (2, True), refused.err


async def test_status_counts_windows_of_extraction(run: Run, deployment: Deployment) -> None:
    with psycopg.connect(
        str(deployment.database_dsn), options=f"-csearch_path={deployment.database_schema}", autocommit=True
    ) as connection:
        connection.execute(
            "INSERT INTO windows (tenant, user_id, conversation, from_seq, to_seq, cut_at, due_at, attempts,"
            " batch_id, is_answered) SELECT 'acme', 'u1', 'c1', n, n, now(), now() + due, 0, batch, false"
            " FROM (VALUES (1, '0 s'::interval, NULL), (2, '0 s', NULL), (3, '1 h', NULL), (4, '0 s', 'b1'))"
            " AS w (n, due, batch)"
        )
        connection.execute(
            "INSERT INTO batches (batch_id, provider, model, purpose, state, lines, created_at, changed_at,"
            " deadline_at) SELECT batch, 'openai', 'm', 'extract', state, 1200, now() - age, now(), now()"
            " FROM (VALUES ('b1', 'submitted', '2 h'::interval), ('b2', 'submitted', '3 min'),"
            " ('b3', 'intended', '10 min'), ('b4', 'completed', '9 h')) AS b (batch, state, age)"
        )
    models = json.loads((await run("status", "--json")).out)["models"]
    assert models["windows"] == {"due": 2, "later": 1, "in_batches": 1, "dead_today": 0}
    assert [(each["state"], each["batches"], each["lines"]) for each in models["batches"]] == [
        ("intended", 1, 1200),
        ("submitted", 2, 2400),
    ]
    assert 7200 <= models["batches"][1]["age_seconds"] < 7800
    shown = (await run("status")).out
    assert "windows       2 due, 1 waiting for a retry, 1 in batches, 0 given up today" in shown
    intended = r"1 intended \(1,200 lines, the oldest 1\d min\)"
    submitted = r"2 submitted \(2,400 lines, the oldest 2\.\d h\)"
    assert re.search(f"batches       {intended}, {submitted}", shown)
