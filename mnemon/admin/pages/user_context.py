"""The context that a bot would get for its next answer, and the tokens of its sections."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, get_args

from starlette.responses import Response

from mnemon.admin.forms.fields import parse_whole_number
from mnemon.admin.page import PageSection, Visit
from mnemon.admin.page_user import PageUser, build_frame_values
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.verbs.ask import ContextReplyV1, ContextSection, Format
from mnemon_infra.settings.store import read_settings
from mnemon_producers.errors import AskFailed

pages = PageSection("Users", "/users")

_FORMATS: Final = [(each, each) for each in get_args(Format)]

BAR_WIDTH: Final = 1000
"""Width of the bar, in units of its view box."""


class BudgetBar(NamedTuple):
    """A section in the bar of the budget; `x` is its left edge. The whole bar has the width `BAR_WIDTH`."""

    name: str
    section: ContextSection
    x: float
    width: float


@pages.get("/user/context")
async def show_context(visit: Visit) -> Response:
    """Show the context as a bot would get it now."""
    page_user = PageUser.from_fields(visit.query)
    asked = {
        name: visit.query.get(name, "").strip() for name in ("query", "format", "budget", "conversation")
    }
    usual = (await read_settings(await visit.connections.get_broker(), page_user.tenant)).context.budget
    reply, error = None, None
    try:
        reply = await _request_context(visit, page_user, asked)
    except InvalidBody as wrong:
        error = wrong
    except AskFailed as failed:
        if failed.code != "bad_request":
            raise
        field, _, problem = failed.message.partition(": ")
        error = InvalidBody(field, problem)
    budget = parse_whole_number(asked["budget"]) or usual
    return visit.render(
        "user/context.html",
        status=422 if error else 200,
        asked=asked,
        formats=_FORMATS,
        usual=usual,
        budget=budget,
        reply=reply,
        bars=_scale_sections(reply.sections, max(budget, reply.tokens or 0)) if reply else [],
        wide=BAR_WIDTH,
        errors={error.field: error.problem} if error else {},
        **build_frame_values(page_user, "context"),
    )


async def _request_context(visit: Visit, page_user: PageUser, form: Mapping[str, str]) -> ContextReplyV1:
    fields: dict[str, Any] = {name: value for name, value in form.items() if value}
    if (budget := parse_whole_number(form["budget"])) is not None:
        fields["budget"] = budget
    memory = await page_user.connect_memory(visit)
    # `memory.context` never raises, and would hide an error.
    reply = await memory.ask(page_user.user, "context", **fields)
    assert isinstance(reply, ContextReplyV1)
    return reply


def _scale_sections(sections: Mapping[str, ContextSection], budget: int) -> list[BudgetBar]:
    """Return the sections side by side, scaled to the budget."""
    found, x = [], 0.0
    for name, section in sections.items():
        width = BAR_WIDTH * section.tokens / budget
        found.append(BudgetBar(name, section, x, width))
        x += width
    return found
