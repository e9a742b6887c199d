"""Settings, dead letters, batches and rebuilds on the admin page, with servers and without consumers."""

import asyncio
from datetime import UTC, datetime, timedelta

from mnemon.admin.pages.dead_letters import PAGE_SIZE
from mnemon_contracts.settings.language_models import Price
from mnemon_infra.broker.dead_letters.writer import store_letter
from mnemon_infra.broker.outcomes import Dead
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.generation_repository import create_generation
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.database.windows.batches import StoredBatch, insert_batch
from mnemon_infra.database.windows.window_repository import StoredWindow
from mnemon_infra.database.windows.window_repository import insert_windows as put_windows
from mnemon_infra.generation_names import name_generation
from mnemon_infra.settings.history import read_history
from mnemon_infra.settings.store import change_settings
from tests.support.admin.http_browser import browsing, words
from tests.support.log.dead_letters import bury_said, kept
from tests.support.stock_client import Stock

PRICES = {f"spending.prices.0.{part}": "" for part in Price.model_fields}


async def test_a_setting_is_set_refused_reset_and_set_again(stock: Stock, deployment: Deployment) -> None:
    async with browsing(deployment) as browser:
        page = await browser.see("/settings", tenant="acme")
        assert 'value="500"' in page
        assert 'id="embedding"' not in page, "no tenant has that of its own"
        own = {"tenant": "acme", "group": "limits", "was.limits.per_user": "500", "was.limits.profile": "50"}
        # Two open copies of a form each set only the field that was changed in them.
        for name, value in (("per_user", "600"), ("profile", "60")):
            sent = {"limits.per_user": "500", "limits.profile": "50", f"limits.{name}": value}
            said = words(await browser.send("/settings/save", 200, **own, **sent))
            assert f"limits.{name} = {value}" in said
        assert 'value="600"' in await browser.see("/settings", tenant="acme")
        assert "Nothing was changed." in words(await browser.send("/settings/save", 200, **own))

        wrong = {"limits.per_user": "many", "limits.profile": "900", "was.limits.working": "50"}
        refused = await browser.send("/settings/save", 422, **own, **wrong, **{"limits.working": "0"})
        assert "Input should be a valid integer" in refused.partition('id="limits.per_user-error"')[2]
        assert "greater than or equal to 1" in refused.partition('id="limits.working-error"')[2]
        assert 'value="many"' in refused, "what was typed is not lost"

        history = words(await browser.see("/settings/history", tenant="acme"))
        assert "by mnemon-admin" in history
        assert "limits.profile not set → 60" in history
        gone = words(await browser.send("/settings/unset", tenant="acme", name="limits.profile"))
        assert "limits.profile is no longer set" in gone
        for tenant, revisions in ("acme", 3), ("new", 0):
            again = words(await browser.send("/settings/unset", tenant=tenant, name="limits.profile"))
            assert "Nothing was changed." in again
            assert len(await read_history(stock.connection, tenant)) == revisions
        assert "as it was at 2" in words(
            await browser.send("/settings/rollback", tenant="acme", revision="2")
        )
        assert "Revision 99 is not stored" in words(
            await browser.send("/settings/rollback", 409, revision="99")
        )
        assert 'value="60"' in await browser.see("/settings", tenant="acme")

        priced = PRICES | {"spending.prices.0.model": "m", "spending.prices.0.input": "1"}
        spending = {"group": "spending", "was.spending.prices": "[]"}
        refused = words(await browser.send("/settings/save", 422, **spending, **priced))
        assert "line 1, output: Field required" in refused
        said = words(
            await browser.send(
                "/settings/save", 200, **spending, **priced | {"spending.prices.0.output": "2"}
            )
        )
        assert "spending.prices = m (input 1, output 2)" in said


async def test_unset_and_restored_embedding_show_their_consequences(
    stock: Stock, deployment: Deployment
) -> None:
    revision = await change_settings(stock.connection, lambda _: {"embedding": {"provider": "none"}})
    async with browsing(deployment) as browser:
        await browser.see("/settings")
        said = words(await browser.send("/settings/unset", name="embedding.provider"))
        assert "embedding.provider is no longer set. Running processes continue with the model" in said
        said = words(await browser.send("/settings/rollback", revision=str(revision)))
        assert f"as it was at {revision}. Running processes continue with the model" in said


async def test_dead_letters_are_listed_redriven_and_dropped(stock: Stock, deployment: Deployment) -> None:
    async with browsing(deployment) as browser:
        assert "No dead letters" in words(await browser.see("/dead"))
        await bury_said(stock, "<b>Hi</b>", "acme.u1.-")
        dead = Dead("too_many_facts", "60 facts, of which 50 were proposed")
        subject = "memory.globex.u1.window.answered.v1"
        answers = (
            store_letter(stock.connection, "extract", subject, dead, {"answer": "?"}, f"w{number}")
            for number in range(PAGE_SIZE + 1)
        )
        await asyncio.gather(*answers)

        first = await browser.see("/dead")
        assert (first.count('name="letter.'), 'name="letter.1"' in first) == (PAGE_SIZE, False)
        older = await browser.see("/dead", before="3")
        assert (older.count('name="letter.'), "before=" in older) == (2, False)
        assert (await browser.see("/dead", tenant="acme", consumer="persist")).count('name="letter.') == 1
        assert "No dead letter matches" in words(await browser.see("/dead", since="2100-01-01"))
        assert "must be a date" in words(await browser.see("/dead", 400, since="soon"))

        letter = await browser.see("/dead/1")
        assert "This version can read it" in words(letter)
        assert "&lt;b&gt;Hi&lt;/b&gt;" in letter
        assert "the answer had too many facts" in words(await browser.see("/dead/2")).lower()
        chosen = {"letter.1": "1", "letter.2": "1"}
        said = words(await browser.send("/dead/redrive", 200, **chosen))
        assert "1 letter redriven: its message is at position 2 of its stream now." in said
        assert "Letter 2 was not redriven" in said
        assert "No letter was selected" in words(await browser.send("/dead/redrive"))
        await browser.see("/dead/1", 404)

        asked = await browser.send("/dead/confirm", 200, **chosen)
        assert ("Drop letter 2?" in asked, len(await kept(stock.connection))) == (True, PAGE_SIZE + 1)
        assert "1 letter deleted for good." in words(await browser.send("/dead/drop", 200, **chosen))
        assert len(await kept(stock.connection)) == PAGE_SIZE

        until = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
        await stock.connection.jetstream().pause_consumer("LOG", "persist", until)
        assert "persist is paused until" in words(await browser.see("/dead"))
        assert "is paused" not in words(await browser.send("/dead/go-on", consumer="persist"))


async def test_batches_page_lists_open_batches(stock: Stock, deployment: Deployment) -> None:
    now = datetime.now(UTC)
    async with Database(deployment) as database, browsing(deployment) as browser:
        assert "No calls of language models" in words(await browser.see("/usage", tenant="acme", days="7"))
        assert "No batches yet" in words(await browser.see("/usage/batches"))
        async with database.transaction() as connection:
            for number, state in enumerate(("submitted", "failed", "completed")):
                at = now - timedelta(hours=number)
                error = "no quota" if state == "failed" else None
                made = (at, at + timedelta(minutes=9), now + timedelta(hours=5), error)
                batch = StoredBatch(f"b{number}", "openai", "m", state, f"p{number}", 3, *made)  # type: ignore[arg-type]
                await insert_batch(connection, batch)
            cut = [StoredWindow("acme", "u1", "c", 1, 9), StoredWindow("acme", "u2", "c", 2, 9, 0, "b0", 1)]
            await put_windows(connection, cut, now)
            for model, usd in (("m", 0.5), ("unknown", None)):
                await connection.execute(
                    "INSERT INTO model_calls VALUES"
                    " ('acme', 'u1', %s, 1, %s, 'openai', %s, 'extract', false, 900, 300, 100, %s)",
                    (model, now, model, usd),
                )
        used = await browser.see("/usage", tenant="acme", by="model")
        assert f"{now.day} {now:%b}: openai/m $0.5<" in used, "the bar of today"
        assert "acme extract openai/m 1 0 900 300 100 $0.5000" in words(used)
        assert "because the model had no price when it was called: unknown, 1 of 2 calls." in words(used)
        assert "Set prices for future calls." in words(used)
        assert "acme extract openai/unknown 1 0 900 300 100 –" in words(used)
        shown = words(await browser.see("/usage/batches"))
        assert [shown.index(each) for each in ("p0", "p1", "p2")] == sorted(
            shown.index(each) for each in ("p0", "p1", "p2")
        )
        assert "took 9 min no quota p1" in shown
        assert "acme 1 0 1" in shown, "one waits, one is in a batch"
        failed = words(await browser.see("/usage/batches", state="failed"))
        assert ("p1" in failed, "p2" in failed) == (True, False)

    prices = [{"model": "unknown", "input": 1.0, "output": 2.0}]
    await change_settings(stock.connection, lambda _: {"spending": {"prices": prices}})
    async with browsing(deployment) as browser:
        priced = words(await browser.see("/usage", tenant="acme"))
        assert "because the model had no price when it was called: unknown, 1 of 2 calls." in priced
        assert "Set prices" not in priced


async def test_generations_are_shown_while_they_are_made(stock: Stock, deployment: Deployment) -> None:
    async with Database(deployment) as database, browsing(deployment) as browser:
        for _ in range(4):
            await stock.say("hi")
        schema = name_generation(deployment.database_schema, "as of", 3)
        await create_generation(database, schema, 3)
        async with hold_lock(database, "rebuild", deployment.database_schema):
            busy = await browser.see("/rebuilds/live")
            assert "A rebuild is running" in busy
            assert "0 of 3 positions" in words(f"<main>{busy}")
            assert "Drop…" not in busy
            await browser.see("/rebuilds")
            refused = words(await browser.send("/rebuilds/drop", 409, name=schema))
            assert "another rebuild of the schema" in refused
        left = words(await browser.see("/rebuilds"))
        assert "An interrupted rebuild left it" in left
        assert "mnemon rebuild --verify" in left
        asked = words(await browser.send("/rebuilds/confirm", name=schema))
        assert f"Drop {schema}?" in asked
        assert f"{schema} is removed." in words(await browser.send("/rebuilds/drop", name=schema))
        live = deployment.database_schema
        assert f"{live} is live" in words(await browser.send("/rebuilds/drop", 409, name=live))
