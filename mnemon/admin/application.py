"""The application of the admin page: its sections, their routes and the middleware."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from mnemon.admin.connections import Parts
from mnemon.admin.live_status import LiveStatus
from mnemon.admin.page import PageSection
from mnemon.admin.pages import (
    dead_letters,
    overview,
    rebuilds,
    settings,
    usage,
    user_context,
    user_conversations,
    user_data,
    user_erase,
    user_facts,
    users,
)
from mnemon.admin.rendering.outages import Trouble
from mnemon.admin.rendering.renderer import render
from mnemon.admin.session import login
from mnemon.admin.session.access import Access
from mnemon.admin.session.request_guard import Guard

SECTIONS: Final[Sequence[PageSection]] = (
    overview.pages,
    users.pages,
    settings.pages,
    usage.pages,
    dead_letters.pages,
    rebuilds.pages,
)
"""Sections in the order of the navigation."""

_OF_A_USER: Final = (
    user_facts.pages,
    user_conversations.pages,
    user_context.pages,
    user_data.pages,
    user_erase.pages,
)

_MOST_BYTES = 2_000_000
"""Maximum size of a form in bytes: enough for a long document, too small to fill a disk."""


def application(parts: Parts, access: Access, names: Collection[str] = ()) -> Starlette:
    """Return the application of the admin page.

    Args:
        parts: the servers that it shows.
        access: checks tokens, links and sessions.
        names: host names by which browsers reach it, besides addresses and `localhost`.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with parts.used():
            yield

    made = Starlette(
        routes=[
            *login.ROUTES,
            *(route for pages in (*SECTIONS, *_OF_A_USER, login.pages) for route in pages.routes),
            Mount("/static", StaticFiles(packages=[("mnemon.admin", "static")]), name="static"),
        ],
        middleware=[Middleware(Guard, names=names)],
        exception_handlers={HTTPException: _refuse},
        lifespan=lifespan,
        max_body_size=_MOST_BYTES,
    )
    made.state.parts = parts
    made.state.access = access
    made.state.watch = LiveStatus(parts)
    made.state.navigation = [(pages.title, pages.home) for pages in SECTIONS]
    made.state.version = version("mnemon")
    return made


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = "Page not found" if error.status_code == 404 else "Request not possible"
    why = Trouble(error.status_code, title, error.detail, "Choose a page from the navigation.")
    return render(request, "trouble.html", status=error.status_code, trouble=why)
