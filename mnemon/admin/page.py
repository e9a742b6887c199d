"""Declaration of pages and handling of their requests. A session is required except to log in."""

import asyncio
import functools
import hmac
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mnemon.admin.connections import ServerConnections
from mnemon.admin.forms.fields import Fields, read_form
from mnemon.admin.rendering.outages import PageError, describe_error
from mnemon.admin.rendering.renderer import render_template
from mnemon.admin.session.access import Access, Session
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.subjects import InvalidId
from mnemon_infra.process.cancellation import suppress_task_error

log = structlog.get_logger("admin")

PAGE_TIMEOUT: Final = 20.0
"""Maximum time for a page, in seconds. Its requests to servers time out earlier, unless a server hangs."""

PROOF: Final = "proof"
"""Field with the CSRF token, which other sites cannot know. `PageSection.post` requires it in each form."""

_IDS: Final = frozenset({"tenant", "user", "conversation", "name"})
"""Fields with ids, which are not stripped: an id with a blank at its end is a different id."""

NOTICE: Final = "mnemon-notice"
"""Name of the cookie with a notice for the next page."""

_LONGEST_NOTICE: Final = 300
"""Maximum length of a notice in characters of any script: browsers drop cookies of over 4096 bytes."""

FRAGMENT: Final = "x-fragment"
"""Header of a request for a fragment of a page, which replaces the former fragment in the browser."""

SESSION_OVER: Final = "The session is over. Log in again; nothing was changed."


@dataclass(frozen=True)
class Visit:
    """A request with a valid session.

    Attributes:
        section: title of the section.
        query: fields of the query string: `/users?tenant=acme`.
        form: fields of the submitted form, each once; blanks at the ends are removed, except from ids.
    """

    request: Request
    session: Session
    section: str
    query: Fields = field(default_factory=Fields)
    form: Fields = field(default_factory=Fields)

    @property
    def connections(self) -> ServerConnections:
        parts: ServerConnections = self.request.app.state.parts
        return parts

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a page, or a fragment of a page, from a template."""
        notice = self.request.app.state.access.read_notice(self.request.cookies.get(NOTICE))
        is_part = FRAGMENT in self.request.headers
        frame = "fragment.html" if is_part else "base.html"
        shown = {"section": self.section, "proof": self.session.proof, "notice": notice, "frame": frame}
        response = render_template(self.request, template, status=status, **shown, **values)
        if notice and not is_part:
            response.delete_cookie(NOTICE, path="/")
        return response

    def redirect(self, path: str, notice: str | None = None, **query: str) -> Response:
        """Redirect to `path` after a change; that page shows `notice`, unless it is None."""
        address = f"{path}?{urlencode(query)}" if query else path
        response = RedirectResponse(address, status_code=303)
        if notice:
            access: Access = self.request.app.state.access
            shown = notice if len(notice) <= _LONGEST_NOTICE else f"{notice[:_LONGEST_NOTICE]} …"
            response.set_cookie(
                NOTICE, access.sign_notice(shown), path="/", httponly=True, samesite="strict", max_age=60
            )
        return response

    def render_error(self, why: PageError) -> Response:
        """Render a page with the reason why the request failed, and the next step."""
        return self.render("trouble.html", status=why.status, trouble=why)


Handler = Callable[[Visit], Coroutine[Any, Any, Response]]


class PageSection:
    """The pages of one section, its title, and the path of its first page, `home`."""

    def __init__(self, title: str, home: str) -> None:
        self.title = title
        self.home = home
        self.routes: list[Route] = []

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """Return a decorator that makes a function the handler of the page at `path`."""
        return self._declare_route(path, "GET")

    def post(self, path: str) -> Callable[[Handler], Handler]:
        """Return a decorator that makes a function the handler of forms that are sent to `path`.

        The handler runs only if a page of the same session sent the form.
        """
        return self._declare_route(path, "POST")

    def _declare_route(self, path: str, method: str) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            @functools.wraps(handler)
            async def endpoint(request: Request) -> Response:
                return await _handle_request(request, handler, self.title)

            self.routes.append(Route(path, endpoint, methods=[method]))
            return handler

        return declare


async def _handle_request(request: Request, handler: Handler, section: str) -> Response:
    access: Access = request.app.state.access
    session = access.get_session(request.cookies.get(access.cookie))
    if session is None:
        return _redirect_to_login(request)
    visit = Visit(request, session, section)
    try:
        query, form = Fields.from_values(request.query_params), Fields()
        if request.method == "POST":
            for name, text in (await read_form(request)).items():
                form[name] = text if name in _IDS else text.strip()
            if not hmac.compare_digest(form.pop(PROOF, "").encode(), session.proof.encode()):
                why = PageError(
                    403,
                    "The form was refused",
                    "The form does not belong to the current session; nothing was changed.",
                    "Go back, reload the page and send the form again.",
                )
                return visit.render_error(why)
        visit = Visit(request, session, section, query, form)
        return await _await_page(handler(visit))
    except (InvalidId, InvalidBody) as error:
        return visit.render_error(
            PageError(400, "Invalid request", str(error), "Go back and correct the request.")
        )
    except HTTPException:
        raise
    except Exception as error:
        why_not = describe_error(error)
        if why_not:
            log.warning("admin page request failed", path=request.url.path, error=why_not.message)
            return visit.render_error(why_not)
        log.error("admin page failed", path=request.url.path, exc_info=error)
        said = f"{type(error).__name__}: an internal error."
        return visit.render_error(
            PageError(500, "The page failed", said, "Read the log messages of mnemon for details.")
        )


async def _await_page(page: Coroutine[Any, Any, Response]) -> Response:
    """Return the page if it is ready within `PAGE_TIMEOUT` seconds; otherwise abandon it.

    The page is not cancelled: a call that waits for a hanging database cannot be stopped.

    Raises:
        TimeoutError: the page takes too long.
    """
    making = asyncio.ensure_future(page)
    await asyncio.wait([making], timeout=PAGE_TIMEOUT)
    if making.done():
        return making.result()
    making.add_done_callback(suppress_task_error)
    raise TimeoutError


def _redirect_to_login(request: Request) -> Response:
    if FRAGMENT in request.headers:
        return Response(status_code=401)
    if request.method != "GET":
        return RedirectResponse("/login?over=1", status_code=303)
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/login?{urlencode({'next': asked})}" if asked != "/" else "/login", 303)
