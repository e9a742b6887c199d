"""The admin page in a browser: a day's actions, and the layout of each page."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import psycopg
import pytest
from playwright.async_api import Locator, Page, expect

from mnemon.admin.application import create_application
from mnemon.admin.connections import ServerConnections
from mnemon.admin.session.access import Access
from mnemon.http.server import format_address, open_listening_socket, serve_http
from mnemon_infra.broker.connection import connect
from mnemon_infra.config import Deployment
from mnemon_infra.process.data_folder import Endpoints
from mnemon_producers.client import MemoryClient
from tests.support.admin.chromium import browsing, needed
from tests.support.admin.sample_memory import REFUSED, TENANT, USER, bury, mend, spend, talk
from tests.support.patience import PATIENT
from tests.support.processes.stack import TIMEOUT, Up
from tests.support.servers.qdrant import stack_schema

KEPT: Final = os.environ.get("MNEMON_SCREENSHOTS")
"""The folder for screenshots, read on import: the tests run without the variables of their caller."""

TOKEN: Final = "of this walk"
REFUSED_FORM: Final = (
    "error: Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)"
)
"""Chromium's message for a form that is shown again with its errors."""

WIDTHS: Final = {"wide": 1280, "narrow": 390}
HERS: Final = urlencode({"tenant": TENANT, "user": USER})
PAGES: Final = {
    "overview": "/",
    "users": f"/users?tenant={TENANT}",
    "facts": f"/user/facts?{HERS}",
    "conversations": f"/user/conversations?{HERS}",
    "context": f"/user/context?{HERS}",
    "data": f"/user/data?{HERS}",
    "erase": f"/user/erase?{HERS}",
    "settings": f"/settings?tenant={TENANT}",
    "settings-history": f"/settings/history?tenant={TENANT}",
    "usage": f"/usage?tenant={TENANT}",
    "batches": "/usage/batches",
    "dead-letters": f"/dead?tenant={TENANT}",
    "rebuilds": "/rebuilds",
}


@asynccontextmanager
async def admin_page(endpoints: Endpoints, data: Path) -> AsyncIterator[str]:
    """Serve the admin page of a stack in this process, and yield its address."""
    deployment = Deployment(
        nats_url=endpoints.nats,
        database_dsn=endpoints.database,
        database_schema=stack_schema(data),
        qdrant_url=endpoints.qdrant,
    )
    page = create_application(ServerConnections(deployment, data), Access(TOKEN))
    with open_listening_socket("127.0.0.1", 0) as listening:
        async with serve_http(page, listening):
            yield format_address(listening)


@pytest.mark.long
@needed
@pytest.mark.timeout(600)
async def test_admin_pages_work_in_a_browser(shared: Up, tmp_path: Path) -> None:
    endpoints = shared.endpoints
    assert endpoints is not None
    expect.set_options(timeout=TIMEOUT * 1000)
    pictures = Path(KEPT or tmp_path)
    with psycopg.connect(
        endpoints.database, autocommit=True, options=f"-c search_path={shared.schema}"
    ) as database:
        async with await connect(endpoints.nats, name="test") as connection:
            await talk(MemoryClient(connection, tenant=TENANT, timeouts=PATIENT))
            await bury(connection, database)
        spend(database, datetime.now(UTC))
        async with admin_page(endpoints, shared.data) as address, browsing(address, TIMEOUT) as browser:
            page = browser.page
            await logs_in(page, pictures)
            await changes_a_fact(page)
            await changes_a_setting(page)
            await gives_a_letter_back(page, database)
            for name, path in PAGES.items():
                await page.goto(path)
                await looks_at(page, name, pictures)
            await drops_a_letter(page, pictures)
            assert browser.complaints == [REFUSED_FORM]
            assert browser.hosts == {address.removeprefix("http://")}
    assert len(list(pictures.glob("*.png"))) >= 4 * len(PAGES)


async def logs_in(page: Page, pictures: Path) -> None:
    await page.goto(f"/users?tenant={TENANT}")
    await expect(page).to_have_title("Log in · mnemon")
    await looks_at(page, "login", pictures)
    await page.get_by_label("Token").fill(TOKEN)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("heading", name="Users")).to_be_visible()


async def changes_a_fact(page: Page) -> None:
    await page.get_by_label("User id begins with").fill(USER[:2])
    await page.get_by_role("button", name="Find").click()
    await page.get_by_role("link", name=USER).click()
    await page.get_by_role("link", name="Anna's sister Vera lives in Riga.").click()
    text = page.get_by_role("textbox", name="Fact")
    await text.fill("Anna's sister Vera moved to Tallinn.")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_role("status")).to_contain_text("was changed")
    await expect(page.get_by_role("textbox", name="Fact")).to_have_value(
        "Anna's sister Vera moved to Tallinn."
    )
    await expect(page.get_by_text("Anna's sister Vera lives in Riga.").first).to_be_visible()


async def changes_a_setting(page: Page) -> None:
    context = f"/user/context?{HERS}"
    stamped = page.get_by_text("[20")
    await page.goto(context)
    await expect(stamped.first).to_be_visible()

    await page.goto(f"/settings?tenant={TENANT}")
    await page.set_viewport_size({"width": 1280, "height": 400})
    group = page.get_by_role("form", name="time_stamps")
    await group.get_by_label("zone").fill("Riga")
    await group.get_by_role("button", name="Save").click()
    await expect(group.get_by_text("'Riga' is not a time zone")).to_be_in_viewport()
    await group.get_by_label("zone").fill("Europe/Riga")
    await group.get_by_label("template").fill("({time}) {text}")
    await group.get_by_role("button", name="Save").click()
    said = page.get_by_role("status").filter(has_text="time_stamps.zone = Europe/Riga")
    await expect(said).to_be_in_viewport()
    await expect(group.get_by_role("heading")).to_be_in_viewport()

    await page.goto(context)
    await until(page, page.get_by_text("(20"))
    await expect(stamped).to_have_count(0)


async def gives_a_letter_back(page: Page, database: psycopg.Connection) -> None:
    conversations = f"/user/conversations?{HERS}"
    await page.goto(f"/dead?tenant={TENANT}")
    letter = page.get_by_role("row").filter(has_text="refused_by_database")
    await until(page, letter)
    mend(database)
    await letter.get_by_role("link").first.click()
    await expect(page.get_by_text(REFUSED)).to_be_visible()
    await page.get_by_role("button", name="Redrive").click()
    await expect(page.get_by_role("status")).to_contain_text("1 letter redriven")
    await page.goto(conversations)
    await until(page, page.get_by_text(REFUSED))


async def drops_a_letter(page: Page, pictures: Path) -> None:
    await page.goto(f"/dead?tenant={TENANT}")
    letter = page.get_by_role("row").filter(has_text="invalid_body")
    await letter.get_by_role("link").first.click()
    await expect(page.get_by_text("The field role")).to_be_visible()
    await looks_at(page, "dead-letter", pictures)
    await page.get_by_role("button", name="Drop").click()
    await page.get_by_role("button", name="Drop for good").click()
    await expect(page.get_by_role("status")).to_have_text("1 letter deleted for good.")
    await expect(letter).to_have_count(0)


async def until(page: Page, shown: Locator) -> None:
    """Reload the page until the element is shown."""
    async with asyncio.timeout(TIMEOUT):
        while not await shown.count():
            await page.reload()


async def looks_at(page: Page, name: str, pictures: Path) -> None:
    """Check that no element is wider than the page, in each width; take screenshots in light and dark."""
    for how, width in WIDTHS.items():
        await page.set_viewport_size({"width": width, "height": 900})
        reaches = await page.evaluate("document.documentElement.scrollWidth")
        assert reaches <= width, f"{name} is {reaches} wide where there is room for {width}"
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            await page.screenshot(path=pictures / f"{name}-{how}-{scheme}.png", full_page=KEPT is not None)
