"""A user's conversations and their messages."""

from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from mnemon.admin.page import PageSection, Visit
from mnemon.admin.page_user import PageUser, build_frame_values
from mnemon_contracts.verbs.ask import MAX_HISTORY
from mnemon_infra.database.memory.users import list_conversations

pages = PageSection("Users", "/users")

_PAGE_SIZE: Final = 50
"""Maximum number of messages that the page shows at first."""


@pages.get("/user/conversations")
async def show_history(visit: Visit) -> Response:
    """Show the user's newest conversations, at most 500, and the newest messages of one conversation."""
    return await _render_history(
        visit, PageUser.from_fields(visit.query), visit.query.get("conversation") or None
    )


@pages.post("/user/conversation/erase")
async def erase_conversation(visit: Visit) -> Response:
    """Erase a conversation for good if its id was typed as a confirmation."""
    page_user, conversation = PageUser.from_fields(visit.form), visit.form["conversation"]
    if visit.form.get("confirmed") != conversation.strip():
        return await _render_history(
            visit, page_user, conversation, "Type the id of the conversation exactly as shown above."
        )
    memory = await page_user.connect_memory(visit)
    reply = await memory.erase(page_user.user, conversation=conversation)
    return visit.render(
        "user/receipt.html",
        receipt=reply,
        what=f"Conversation {conversation}",
        **build_frame_values(page_user, ""),
    )


async def _render_history(
    visit: Visit, page_user: PageUser, conversation: str | None, error: str = ""
) -> Response:
    database = await visit.connections.get_database()
    all_of_them = await database.run_query(list_conversations((page_user.tenant, page_user.user)))
    memory = await page_user.connect_memory(visit)
    limit = min(visit.query.get_number("limit") or _PAGE_SIZE, MAX_HISTORY)
    reply = await memory.history(
        page_user.user, limit=limit, conversation=conversation, min_seq=page_user.seq
    )
    # A higher limit shows no more messages if the reply has no room for them.
    more = reply.may_have_older_messages(limit) and reply.left_out is None and limit < MAX_HISTORY
    return visit.render(
        "user/conversations.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK,
        conversations=all_of_them,
        reply=reply,
        more=min(limit * 4, MAX_HISTORY) if more else None,
        error=error,
        **build_frame_values(page_user, "conversations"),
    )
