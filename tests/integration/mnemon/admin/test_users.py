"""The admin page's users, with all servers and consumers, and with servers missing."""

import re
from pathlib import Path
from typing import Any

import pytest

from mnemon_consumers.app import run_consumers
from mnemon_contracts.subjects import encode_token
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from tests.support.admin.http_browser import browsing, words
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed, persisted

WHOSE: dict[str, Any] = {"tenant": "acme", "user": "anna"}
ODD: dict[str, Any] = {"tenant": "acme", "user": "a/b <i>&?"}


@pytest.mark.long
async def test_user_pages_list_show_change_and_erase(
    stock: Stock, deployment: Deployment, tmp_path: Path
) -> None:
    deployment = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(CONSUMERS, deployment), browsing(deployment) as browser:
        for number in range(30):
            await stock.say("hi", place=f"acme.visitor-{number:02}.-")
        await stock.say("ho", place="globex.other.-")
        await stock.say("<script>alert(1)</script>", place=f"acme.{encode_token(ODD['user'])}.-")
        source = await stock.say("I like trains, says Anna", place="acme.anna.trip")
        fact = {"text": "Anna likes trains", "tier": "profile", "importance": 7}
        lineage = {"sources": [source], "conversation": "trip", "extractor": "extract", "model": "m-1"}
        lineage |= {"unsupported": ["Anna"]}
        saved = {"fact_id": "pf_001", "fact": fact, "decision": {"proposal_id": "p-1"}, "lineage": lineage}
        end = await stock.publish("memory.acme.anna.fact.saved.v1", saved)
        await indexed(stock, end)

        # Users are listed by tenant and by the begin of the id, in pages.
        assert "acme globex" in words(await browser.see("/users"))
        first = await browser.see("/users", tenant="acme", begins="visitor")
        assert (first.count("/user/facts?"), "visitor-24" in first, "anna" in first) == (25, True, False)
        second = await browser.see("/users", tenant="acme", begins="visitor", after="visitor-24")
        assert re.findall(r">(visitor-\d+)<", second) == [f"visitor-{number}" for number in range(25, 30)]
        assert "a/b &lt;i&gt;&amp;?" in await browser.see("/users", tenant="acme", begins="a/")

        # Input of users is escaped.
        odd = await browser.see("/user/conversations", **ODD)
        assert "&lt;script&gt;" in odd
        assert "<script>alert" not in odd

        # The link to earlier messages does not depend on where an entry with tools is cut.
        await stock.say("Is it open?", place="acme.ben.shop")
        await stock.say("Let me see", place="acme.ben.shop", tool_calls=[{"name": "hours"}])
        await persisted(stock.connection, await stock.say("It is open", place="acme.ben.shop"))
        shop: dict[str, Any] = {"tenant": "acme", "user": "ben", "conversation": "shop"}
        cut = await browser.see("/user/conversations", **shop, limit="2")
        assert ("Let me see" in cut, "Earlier messages" in cut) == (False, True)
        assert "Earlier messages" not in await browser.see("/user/conversations", **shop, limit="20")

        # The page of a fact shows its lineage.
        seen = words(await browser.see("/user/fact", **WHOSE, id="pf_001"))
        assert "by extract · with m-1" in seen
        assert "Not in the source messages: Anna." in seen
        assert "I like trains, says Anna" in seen
        assert "there is no fact 'pf_999'" in words(
            await browser.see("/user/fact", 404, **WHOSE, id="pf_999")
        )

        # A fact is refused with the error beside the field, saved, updated, found and forgotten.
        refused = words(await browser.send("/user/save", 422, **WHOSE, text="What is her name?"))
        assert "The text is a question, and a fact is a statement." in refused
        wrong = await browser.send("/user/save", 422, **WHOSE, text="Anna has a cat", expires_at="soon")
        assert "such as 2026-12-01" in wrong.partition('id="expires_at-error"')[2]
        assert "Anna has a cat" in wrong, "what was typed is not lost"
        kept = words(await browser.send("/user/save", **WHOSE, text="Anna has a cat", tier="archive"))
        assert "Saved as ar_001." in kept
        changed = words(
            await browser.send("/user/update", **WHOSE, id="pf_001", text="Anna loves trains", tier="profile")
        )
        assert "pf_001 was changed." in changed
        assert "Former versions Anna likes trains" in changed
        assert "Anna has a cat" in words(await browser.see("/user/facts", **WHOSE, q="cat"))
        gone = words(await browser.send("/user/forget", **WHOSE, id="ar_001"))
        assert "ar_001 was forgotten." in gone
        assert "Anna has a cat" not in gone

        # The page of the context shows the parts to the scale of the budget.
        context = await browser.see("/user/context", **WHOSE, query="trains", budget=400)
        assert "Anna loves trains" in context
        assert "of 400 tokens" in words(context)
        assert float(re.findall(r'class="part-facts" x="0.00" width="([\d.]+)"', context)[0]) > 0
        assert 'id="budget-error"' in await browser.see("/user/context", 422, **WHOSE, budget="much")

        # Data and tasks.
        data = words(await browser.send("/user/data/set", **WHOSE, name="age", value="34"))
        assert "age was set." in data
        assert "age 34" in data
        long = words(await browser.send("/user/data/set", **WHOSE, name="n" * 400, value="[" * 5000))
        assert f" {'n' * 300} … " in long, "a browser would not keep a longer notice"
        task = words(await browser.send("/user/task", **WHOSE, action="add", text="Buy tickets"))
        assert "Buy tickets" in task
        assert "such as" in words(
            await browser.send("/user/task", 422, **WHOSE, action="add", text="x", due_at="?")
        )

        # An id with a space at the end is another user, and a name with one is another field.
        await browser.send("/user/data/set", **WHOSE, name="age ", remove="1")
        other = WHOSE | {"user": "anna "}
        assert "is erased" in await browser.send("/user/erase", **other, confirmed="anna ")
        assert "age 34" in words(await browser.see("/user/data", **WHOSE))

        # The overview shows the consumers as running.
        overview = words(await browser.see("/"))
        assert "persist" in overview
        assert "not running" not in overview
        health = words(await browser.see("/overview/health"))
        assert "healthy" in health
        assert "PostgreSQL 18" in health

        # A conversation, and then the user, are erased only when the id is typed as a confirmation.
        one = {**WHOSE, "conversation": "trip"}
        assert "Type the id" in await browser.send("/user/conversation/erase", 422, **one, confirmed="tr")
        assert "is erased" in await browser.send("/user/conversation/erase", **one, confirmed="trip")
        assert "No conversations with messages" in await browser.see("/user/conversations", **WHOSE)
        assert "Type the id" in await browser.send("/user/erase", 422, **WHOSE, confirmed="ann")
        receipt = words(await browser.send("/user/erase", **WHOSE, confirmed="anna"))
        assert "anna is erased" in receipt
        left = words(await browser.send("/user/verify", **WHOSE, text="trains"))
        assert "Remaining items" in left
        assert "anna" not in re.findall(
            r">(\w+)</a>", await browser.see("/users", tenant="acme", begins="ann")
        )


async def test_unavailable_servers_are_named(deployment: Deployment) -> None:
    async with browsing(deployment) as browser:
        assert "not running" in await browser.see("/")
        assert "No messages yet" in await browser.see("/users")
        silent = words(await browser.see("/user/facts", 503, **WHOSE))
        assert "that `retrieve` runs" in silent
        assert "an id must not be empty" in words(
            await browser.see("/user/facts", 400, tenant="acme", user="")
        )
    no_database = Deployment(nats_url=deployment.nats_url, database_dsn="postgresql://x@127.0.0.1:1/x")
    async with browsing(no_database) as browser:
        assert "The database cannot be used" in words(await browser.see("/users", 503))
        assert "the database cannot be used" in words(await browser.see("/overview/health"))
