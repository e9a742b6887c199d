"""Debian's Chromium, which Playwright controls, and which connects to this machine only."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.async_api import ConsoleMessage, Page, Request, async_playwright

PROGRAM: Final = shutil.which("chromium")

needed = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed: `chromium` is needed")

_ARGUMENTS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The names of other hosts do not resolve.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@dataclass
class Browsing:
    """A browser with one open page.

    Attributes:
        page: the open page.
        complaints: warnings and errors of the console, and errors of scripts.
        hosts: hosts and ports that received a request.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def heed(self) -> None:
        """From now on, record complaints and hosts."""
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        self.hosts.add(urlsplit(request.url).netloc)


@asynccontextmanager
async def browsing(address: str, timeout: float) -> AsyncIterator[Browsing]:
    """Run a browser with an empty profile for the duration of the block.

    Args:
        address: address of the server, which precedes each path.
        timeout: maximum seconds of each action of the browser.
    """
    with TemporaryDirectory(prefix="mnemon-chromium-", ignore_cleanup_errors=True) as profile:
        async with async_playwright() as playwright:
            context = await playwright.chromium.launch_persistent_context(
                profile,
                executable_path=PROGRAM,
                headless=True,
                chromium_sandbox=False,  # the sandbox needs rights that a container does not have
                args=_ARGUMENTS,
                base_url=address,
            )
            try:
                context.set_default_timeout(timeout * 1000)
                context.set_default_navigation_timeout(timeout * 1000)
                browsing = Browsing(context.pages[0])
                browsing.heed()
                yield browsing
            finally:
                await context.close()
