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

from mnemon.admin.connections import ServerConnections
from mnemon.admin.live_status import LiveStatus
from mnemon.admin.page import PageSection
from mnemon.admin.pages import (
    dead_letters,
    login,
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
from mnemon.admin.rendering.outages import PageError
from mnemon.admin.rendering.renderer import render_template
from mnemon.admin.session.access import Access
from mnemon.admin.session.request_guard import RequestGuard

SECTIONS: Final[Sequence[PageSection]] = (
    overview.pages,
    users.pages,
    settings.pages,
    usage.pages,
    dead_letters.pages,
    rebuilds.pages,
)
"""Sections in the order of the navigation."""

_USER_SECTIONS: Final = (
    user_facts.pages,
    user_conversations.pages,
    user_context.pages,
    user_data.pages,
    user_erase.pages,
)

_MAX_FORM_BYTES = 2_000_000
"""Maximum size of a form in bytes: enough for long texts, too small to fill a disk."""


def create_application(parts: ServerConnections, access: Access, names: Collection[str] = ()) -> Starlette:
    """Return the application of the admin page.

    `names` are host names by which browsers reach the page, besides IP addresses and `localhost`.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with parts.close_at_end():
            yield

    made = Starlette(
        routes=[
            *login.ROUTES,
            *(route for pages in (*SECTIONS, *_USER_SECTIONS, login.pages) for route in pages.routes),
            Mount("/static", StaticFiles(packages=[("mnemon.admin", "static")]), name="static"),
        ],
        middleware=[Middleware(RequestGuard, names=names)],
        exception_handlers={HTTPException: _render_http_error},
        lifespan=lifespan,
        max_body_size=_MAX_FORM_BYTES,
    )
    made.state.parts = parts
    made.state.access = access
    made.state.watch = LiveStatus(parts)
    made.state.navigation = [(pages.title, pages.home) for pages in SECTIONS]
    made.state.version = version("mnemon")
    return made


async def _render_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = "Page not found" if error.status_code == 404 else "Request not possible"
    why = PageError(error.status_code, title, error.detail, "Choose a page from the navigation.")
    return render_template(request, "trouble.html", status=error.status_code, trouble=why)
