"""Erasure of a user, with a receipt, and its verification."""

from http import HTTPStatus

from starlette.responses import Response

from mnemon.admin.page import PageSection, Visit
from mnemon.admin.page_user import PageUser, build_frame_values

pages = PageSection("Users", "/users")


@pages.get("/user/erase")
async def show_erase(visit: Visit) -> Response:
    """Show the size of the user's memory, and the form that erases the user."""
    return await _render_erase(visit, PageUser.from_fields(visit.query))


@pages.post("/user/erase")
async def erase_user(visit: Visit) -> Response:
    """Erase the user if the id was typed as a confirmation."""
    page_user = PageUser.from_fields(visit.form)
    if visit.form.get("confirmed") != page_user.user.strip():
        return await _render_erase(visit, page_user, "Type the id of the user exactly as shown above.")
    memory = await page_user.connect_memory(visit)
    reply = await memory.erase(page_user.user)
    return visit.render(
        "user/receipt.html", receipt=reply, what=page_user.user, **build_frame_values(page_user, "erase")
    )


@pages.post("/user/verify")
async def verify_erasure(visit: Visit) -> Response:
    """Show the number of items that each store still has of the user.

    If the form has the field `text`, also show how many texts of each store contain it.
    """
    page_user = PageUser.from_fields(visit.form)
    memory = await page_user.connect_memory(visit)
    words = visit.form.get("text") or None
    reply = await memory.erase(page_user.user, verify=True, text=words)
    return visit.render("user/left.html", reply=reply, words=words, **build_frame_values(page_user, "erase"))


async def _render_erase(visit: Visit, page_user: PageUser, error: str = "") -> Response:
    memory = await page_user.connect_memory(visit)
    return visit.render(
        "user/erase.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK,
        kept=await memory.status(page_user.user),
        facts=(await memory.read(page_user.user, limit=1)).total,
        error=error,
        **build_frame_values(page_user, "erase"),
    )
