"""HTTP client that has logged in to the admin page, in the place of a browser."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from mnemon.admin.application import create_application
from mnemon.admin.connections import ServerConnections
from mnemon.admin.session.access import Access
from mnemon_infra.config import Deployment

ADDRESS = "http://127.0.0.1:8765"


class Browser:
    """Client that keeps cookies, and sends forms with the proof (against CSRF) of the last page it loaded."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._proof = ""

    async def see(self, path: str, code: int = 200, **query: str | int) -> str:
        """Load a page, and return its HTML; assert that the response has the status `code`."""
        return self._seen(await self._client.get(path, params={**query} or None), code)

    async def send(self, path: str, code: int = 200, **form: str) -> str:
        """Send a form, and return the HTML of the page that follows; assert that it has the status `code`."""
        sent = {"proof": self._proof, **form}
        answer = await self._client.post(path, data=sent, headers={"origin": ADDRESS}, follow_redirects=True)
        return self._seen(answer, code)

    def _seen(self, answer: httpx.Response, code: int) -> str:
        assert answer.status_code == code, words(answer.text)
        if found := re.search(r'name="proof" value="(\w+)"', answer.text):
            self._proof = found[1]
        return answer.text


def words(page: str) -> str:
    """Return the visible text of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.partition("<main")[2])).split())


@asynccontextmanager
async def browsing(deployment: Deployment) -> AsyncIterator[Browser]:
    """Serve the admin page of a deployment in this process; yield a browser that has logged in."""
    parts = ServerConnections(deployment)
    page = create_application(parts, Access("the token of a test"))
    async with (
        parts.close_at_end(),  # ASGITransport sends no lifespan events
        httpx.AsyncClient(transport=httpx.ASGITransport(page), base_url=ADDRESS) as client,
    ):
        await client.post("/login", data={"token": "the token of a test"}, headers={"origin": ADDRESS})
        yield Browser(client)
