"""A user's facts: list, search, save, update and forget."""

from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response

from mnemon.admin.forms import facts as facing
from mnemon.admin.page import PageSection, Visit
from mnemon.admin.page_user import PageUser, build_frame_values
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.verbs.tools import SaveReplyV1
from mnemon_infra.database.memory.users import load_fact_origin
from mnemon_producers.errors import AskFailed

pages = PageSection("Users", "/users")

_NOTICES: Final = {
    "saved": "Saved as {id}.",
    "updated": "{id} said nearly the same and was updated.",
    "confirmed": "{id} already says the same.",
}
_MAX_HITS: Final = 20


@pages.get("/user/facts")
async def show_facts(visit: Visit) -> Response:
    """Show all facts, and the hits of a query."""
    return await _render_facts(visit, PageUser.from_fields(visit.query))


@pages.post("/user/save")
async def save_fact(visit: Visit) -> Response:
    page_user = PageUser.from_fields(visit.form)
    memory = await page_user.connect_memory(visit)
    try:
        reply = await memory.ask(page_user.user, "save", **{"text": "", **facing.parse_fact_form(visit.form)})
    except (InvalidBody, AskFailed) as error:
        return await _render_facts(visit, page_user, facing.list_errors(error))
    assert isinstance(reply, SaveReplyV1)
    if reply.decision == "rejected":
        return await _render_facts(visit, page_user, {"text": reply.reason or "The fact was rejected."})
    said = _NOTICES.get(reply.decision or "", "The decision follows in a moment.").format(id=reply.id)
    known = {"tenant": page_user.tenant, "user": page_user.user, "seq": str(reply.seen_seq)}
    return visit.redirect("/user/facts", said, **known)


@pages.get("/user/fact")
async def show_fact(visit: Visit) -> Response:
    """Show one fact with its newest former versions and its sources."""
    return await _render_fact(visit, PageUser.from_fields(visit.query), visit.query.get("id", ""))


@pages.post("/user/update")
async def update_fact(visit: Visit) -> Response:
    page_user, fact_id = PageUser.from_fields(visit.form), visit.form.get("id", "")
    memory = await page_user.connect_memory(visit)
    try:
        reply = await memory.ask(page_user.user, "update", id=fact_id, **facing.parse_fact_form(visit.form))
    except (InvalidBody, AskFailed) as error:
        return await _render_fact(visit, page_user, fact_id, facing.list_errors(error))
    known = {"tenant": page_user.tenant, "user": page_user.user, "id": fact_id, "seq": str(reply.seen_seq)}
    return visit.redirect("/user/fact", f"{fact_id} was changed.", **known)


@pages.post("/user/forget")
async def forget_fact(visit: Visit) -> Response:
    page_user, fact_id = PageUser.from_fields(visit.form), visit.form.get("id", "")
    memory = await page_user.connect_memory(visit)
    reply = await memory.forget(page_user.user, fact_id)
    known = {"tenant": page_user.tenant, "user": page_user.user, "seq": str(reply.seen_seq)}
    return visit.redirect("/user/facts", f"{fact_id} was forgotten.", **known)


async def _render_facts(visit: Visit, page_user: PageUser, errors: dict[str, str] | None = None) -> Response:
    memory = await page_user.connect_memory(visit)
    query = visit.query.get("q", "").strip()
    reply = await memory.read_all(page_user.user, min_seq=page_user.seq)
    found = None
    if query:
        found = await memory.search(
            page_user.user,
            query,
            limit=_MAX_HITS,
            threshold=0,
            scope=("memories", "messages"),
            min_seq=page_user.seq,
        )
    by_tier = {tier: [each for each in reply.facts if each.tier == tier] for tier in facing.TIERS}
    return visit.render(
        "user/facts.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK,
        by_tier=by_tier,
        facing=facing,
        query=query,
        found=found,
        errors=errors or {},
        typed=visit.form,
        **build_frame_values(page_user, "facts"),
    )


async def _render_fact(
    visit: Visit, page_user: PageUser, fact_id: str, errors: dict[str, str] | None = None
) -> Response:
    memory = await page_user.connect_memory(visit)
    reply = await memory.get(page_user.user, fact_id, scope="memories", min_seq=page_user.seq)
    assert reply.fact, "there is one, or a refusal"
    database = await visit.connections.get_database()
    came = await database.run_query(load_fact_origin((page_user.tenant, page_user.user), fact_id))
    values: dict[str, Any] = reply.fact.model_dump()
    if reply.fact.expires_at:
        values["expires_at"] = reply.fact.expires_at.isoformat()
    return visit.render(
        "user/fact.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK,
        fact=reply.fact,
        versions=reply.versions,
        events=came.events,
        sources=came.sources,
        facing=facing,
        errors=errors or {},
        typed={**values, **visit.form},
        **build_frame_values(page_user, "facts"),
    )
