"""A user's profile fields and tasks."""

import json
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from mnemon.admin.page import PageSection, Visit
from mnemon.admin.page_user import PageUser, build_frame_values
from mnemon.json_text import parse_json_or_text
from mnemon_contracts.base import InvalidBody

pages = PageSection("Users", "/users")


@pages.get("/user/data")
async def show_data(visit: Visit) -> Response:
    """Show the profile fields and the tasks."""
    return await _render_data(visit, PageUser.from_fields(visit.query))


@pages.post("/user/data/set")
async def set_field(visit: Visit) -> Response:
    """Set or remove one profile field."""
    page_user, name = PageUser.from_fields(visit.form), visit.form.get("name", "")
    removes = "remove" in visit.form
    if not removes:
        name = name.strip()  # a typed name; the name of an existing field must stay as it is
    if not name:
        return await _render_data(visit, page_user, {"name": "Enter the name of the field."})
    value = None if removes else parse_json_or_text(visit.form.get("value", ""))
    memory = await page_user.connect_memory(visit)
    try:
        reply = await memory.set_profile(page_user.user, {name: value})
    except InvalidBody as error:
        return await _render_data(visit, page_user, {"value": error.problem})
    said = f"{name} was removed." if value is None else f"{name} was set."
    return _redirect_to_data(visit, page_user, said, reply.seen_seq)


@pages.post("/user/task")
async def change_tasks(visit: Visit) -> Response:
    """Add a task, mark a task as done, or remove a task."""
    page_user, form = PageUser.from_fields(visit.form), visit.form
    fields = {name: form[name] for name in ("task_id", "text", "due_at") if form.get(name)}
    if form.get("action") == "add" and not form.get("text"):
        return await _render_data(visit, page_user, {"text": "Enter the text of the task."})
    memory = await page_user.connect_memory(visit)
    try:
        reply = await memory.ask(page_user.user, "tasks", action=form.get("action"), **fields)
    except InvalidBody as error:
        return await _render_data(visit, page_user, {error.field: error.problem})
    return _redirect_to_data(visit, page_user, "The tasks were changed.", reply.seen_seq)


async def _render_data(visit: Visit, page_user: PageUser, errors: dict[str, str] | None = None) -> Response:
    memory = await page_user.connect_memory(visit)
    profile = await memory.profile(page_user.user, min_seq=page_user.seq)
    tasks = await memory.tasks(page_user.user, min_seq=page_user.seq)
    return visit.render(
        "user/data.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK,
        profile={name: _format_value(value) for name, value in profile.profile.items()},
        tasks=tasks.tasks,
        errors=errors or {},
        typed=visit.form,
        **build_frame_values(page_user, "data"),
    )


def _redirect_to_data(visit: Visit, page_user: PageUser, notice: str, seq: int) -> Response:
    return visit.redirect("/user/data", notice, tenant=page_user.tenant, user=page_user.user, seq=str(seq))


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
