"""Rendering of templates as HTML responses."""

from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from mnemon.admin.rendering import filters


@cache
def _load_templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("mnemon.admin"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters.FILTERS
    return environment


_DEFAULTS: Final[dict[str, Any]] = {"section": None, "proof": None, "notice": None, "frame": "base.html"}


def render_template(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page, or a fragment of a page, with the values that all pages share."""
    known = {"navigation": request.app.state.navigation, "version": request.app.state.version}
    text = _load_templates().get_template(template).render(_DEFAULTS | known | values)
    # JSON can contain a lone surrogate, which UTF-8 cannot encode: show its number.
    return HTMLResponse(text.encode(errors="backslashreplace"), status_code=status)
