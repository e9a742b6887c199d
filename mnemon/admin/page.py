"""A visit of a page, and how pages are declared: nobody sees one, or changes anything, without a session."""

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

from mnemon.admin.connections import Parts
from mnemon.admin.forms.fields import Fields, read_form
from mnemon.admin.rendering.outages import Trouble, trouble
from mnemon.admin.rendering.renderer import render
from mnemon.admin.session.access import Access, Session
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.subjects import InvalidId
from mnemon_infra.process.cancellation import abandon_quietly

log = structlog.get_logger("admin")

PATIENCE: Final = 20.0
"""Seconds that a page may take; what it asks gives up before, as long as it answers at all."""

PROOF: Final = "proof"
"""The field of every form that other sites cannot know."""

_IDS: Final = frozenset({"tenant", "user", "conversation", "name"})
"""Fields that say whose or which: one with a blank at its end is another than the one without."""

NOTICE: Final = "mnemon-notice"

_LONGEST_NOTICE: Final = 300
"""Characters, of any script: browsers leave out a cookie of more than 4096 bytes."""

FRAGMENT: Final = "x-fragment"
"""The header of what asks for a part of a page, to put it in the place of what it was."""

SESSION_OVER: Final = "The session is over. Log in again; nothing was changed."


@dataclass(frozen=True)
class Visit:
    """One request of somebody who has logged in.

    Attributes:
        query: what the address asks for: `/users?tenant=acme`.
        form: what a form sent, each field once, and but for ids stripped of blanks around it; empty where
            none did.
        parts: the servers.
    """

    request: Request
    session: Session
    section: str
    query: Fields = field(default_factory=Fields)
    form: Fields = field(default_factory=Fields)

    @property
    def parts(self) -> Parts:
        parts: Parts = self.request.app.state.parts
        return parts

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page, or a fragment of one, from a template."""
        notice = self.request.app.state.access.unseal(self.request.cookies.get(NOTICE))
        is_part = FRAGMENT in self.request.headers
        frame = "fragment.html" if is_part else "base.html"
        shown = {"section": self.section, "proof": self.session.proof, "notice": notice, "frame": frame}
        response = render(self.request, template, status=status, **shown, **values)
        if notice and not is_part:
            response.delete_cookie(NOTICE, path="/")
        return response

    def goto(self, path: str, said: str | None = None, **query: str) -> Response:
        """After a change: another page, which shows what is `said`."""
        address = f"{path}?{urlencode(query)}" if query else path
        response = RedirectResponse(address, status_code=303)
        if said:
            access: Access = self.request.app.state.access
            shown = said if len(said) <= _LONGEST_NOTICE else f"{said[:_LONGEST_NOTICE]} …"
            response.set_cookie(
                NOTICE, access.seal(shown), path="/", httponly=True, samesite="strict", max_age=60
            )
        return response

    def refusal(self, why: Trouble) -> Response:
        """A page that says why there is no other."""
        return self.page("trouble.html", status=why.status, trouble=why)


Handler = Callable[[Visit], Coroutine[Any, Any, Response]]


class PageSection:
    """The pages of one section.

    Args:
        title: how the navigation calls it.
        home: its first page.
    """

    def __init__(self, title: str, home: str) -> None:
        self.title = title
        self.home = home
        self.routes: list[Route] = []

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """A page that is looked at."""
        return self._route(path, "GET")

    def post(self, path: str) -> Callable[[Handler], Handler]:
        """A form that changes something. Its `form` is known to be from a page of ours."""
        return self._route(path, "POST")

    def _route(self, path: str, method: str) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            @functools.wraps(handler)
            async def endpoint(request: Request) -> Response:
                return await _visited(request, handler, self.title)

            self.routes.append(Route(path, endpoint, methods=[method]))
            return handler

        return declare


async def _visited(request: Request, handler: Handler, section: str) -> Response:
    access: Access = request.app.state.access
    session = access.session(request.cookies.get(access.cookie))
    if session is None:
        return _to_login(request)
    visit = Visit(request, session, section)
    try:
        query, form = Fields.of(request.query_params), Fields()
        if request.method == "POST":
            for name, text in (await read_form(request)).items():
                form[name] = text if name in _IDS else text.strip()
            if not hmac.compare_digest(form.pop(PROOF, "").encode(), session.proof.encode()):
                why = Trouble(403, "The form was refused", SESSION_OVER, "Go back and reload the page.")
                return visit.refusal(why)
        visit = Visit(request, session, section, query, form)
        return await _in_time(handler(visit))
    except (InvalidId, InvalidBody) as error:
        return visit.refusal(Trouble(400, "Invalid request", str(error), "Go back and correct it."))
    except HTTPException:
        raise
    except Exception as error:
        why_not = trouble(error)
        if why_not:
            log.warning("admin page unavailable", path=request.url.path, error=why_not.said)
            return visit.refusal(why_not)
        log.error("admin page failed", path=request.url.path, exc_info=error)
        said = f"{type(error).__name__}: an internal error."
        return visit.refusal(Trouble(500, "This page failed", said, "See the log of mnemon for details."))


async def _in_time(page: Coroutine[Any, Any, Response]) -> Response:
    """The page, if it comes soon. Else it is left alone: what waits for a hanging database cannot be stopped.

    Raises:
        TimeoutError: it takes too long.
    """
    making = asyncio.ensure_future(page)
    await asyncio.wait([making], timeout=PATIENCE)
    if making.done():
        return making.result()
    making.add_done_callback(abandon_quietly)
    raise TimeoutError


def _to_login(request: Request) -> Response:
    if FRAGMENT in request.headers:
        return Response(status_code=401)
    if request.method != "GET":
        return RedirectResponse("/login?over=1", status_code=303)
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/login?{urlencode({'next': asked})}" if asked != "/" else "/login", 303)
