"""Login to the admin page by token or link, and logout."""

from collections.abc import Mapping
from math import ceil

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mnemon.admin.forms.fields import read_form
from mnemon.admin.page import SESSION_OVER, PageSection, Visit
from mnemon.admin.rendering.renderer import render_template
from mnemon.admin.session.access import SESSION_SECONDS, Access
from mnemon_contracts.base import InvalidBody


async def _show_login(request: Request) -> Response:
    """Show the login form; for a login link only a button, so that a prefetch does not use up the link.

    A browser with a session is redirected instead, unless the request is from a login link.
    """
    access: Access = request.app.state.access
    query = request.query_params
    if access.get_session(request.cookies.get(access.cookie)) and "key" not in query:
        return RedirectResponse(_choose_next_path(query), 303)
    return _render_login(request, error=SESSION_OVER if "over" in query else None, given=query)


async def _log_in(request: Request) -> Response:
    access: Access = request.app.state.access
    address = request.client.host if request.client else ""
    try:
        form = await read_form(request)
    except InvalidBody as wrong:
        return _render_login(request, 400, str(wrong))
    if key := form.get("key"):
        cookie = access.log_in_by_link(key)
        error = "This link was used already or belongs to an earlier start. Log in with the token."
    elif wait := access.get_wait(address):
        page = _render_login(request, 429, f"Too many attempts. Try again in {ceil(wait)} s.", form)
        page.headers["retry-after"] = str(ceil(wait))
        return page
    else:
        cookie = access.log_in(form.get("token", ""), address)
        error = "Wrong token."
    if cookie is None:
        return _render_login(request, 403, error, {"next": form.get("next", "")})
    response = RedirectResponse(_choose_next_path(form), 303)
    response.set_cookie(
        *(access.cookie, cookie),
        max_age=SESSION_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
        # Take the scheme that the browser uses: a proxy with HTTPS forwards requests by HTTP.
        secure=request.headers.get("origin", "").startswith("https:"),
    )
    return response


def _render_login(
    request: Request, status: int = 200, error: str | None = None, given: Mapping[str, str] | None = None
) -> Response:
    kept = {name: (given or {}).get(name, "") for name in ("key", "next")}
    in_folder = request.app.state.parts.data is not None
    return render_template(request, "login.html", status=status, error=error, in_folder=in_folder, **kept)


def _choose_next_path(given: Mapping[str, str]) -> str:
    """Return the path that was requested before the login; `/` if it leads to another site."""
    path = given.get("next", "")
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


pages = PageSection("Log out", "/logout")


@pages.post("/logout")
async def _log_out(visit: Visit) -> Response:
    access: Access = visit.request.app.state.access
    access.end_session(visit.session)
    response = visit.redirect("/login")
    response.delete_cookie(access.cookie, path="/")
    return response


ROUTES = (Route("/login", _show_login, methods=["GET"]), Route("/login", _log_in, methods=["POST"]))
