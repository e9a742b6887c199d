"""A user's conversations and their messages."""

from http import HTTPStatus
from typing import Final

from starlette.responses import Response

from mnemon.admin.page import PageSection, Visit
from mnemon.admin.page_user import PageUser, shown
from mnemon_contracts.verbs.ask import MAX_HISTORY
from mnemon_infra.database.memory.users import list_conversations

pages = PageSection("Users", "/users")

_PAGE: Final = 50
"""Messages that the page shows at first."""


@pages.get("/user/conversations")
async def history(visit: Visit) -> Response:
    """Show all conversations, and the newest messages of one."""
    return await _history(visit, PageUser.of(visit.query), visit.query.get("conversation") or None)


@pages.post("/user/conversation/erase")
async def erase(visit: Visit) -> Response:
    """Erase a conversation for good."""
    whose, conversation = PageUser.of(visit.form), visit.form["conversation"]
    if visit.form.get("confirmed") != conversation.strip():
        return await _history(
            visit, whose, conversation, "Type the id of the conversation exactly as shown above."
        )
    memory = await whose.memory(visit)
    reply = await memory.erase(whose.user, conversation=conversation)
    return visit.page(
        "user_receipt.html", receipt=reply, what=f"Conversation {conversation}", **shown(whose, "")
    )


async def _history(visit: Visit, whose: PageUser, conversation: str | None, error: str = "") -> Response:
    database = await visit.parts.database()
    all_of_them = await database.run_query(list_conversations((whose.tenant, whose.user)))
    memory = await whose.memory(visit)
    limit = min(visit.query.number("limit") or _PAGE, MAX_HISTORY)
    reply = await memory.history(whose.user, limit=limit, conversation=conversation, min_seq=whose.seq)
    more = len(reply.messages) == limit and limit < MAX_HISTORY
    return visit.page(
        "user_conversations.html",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK,
        conversations=all_of_them,
        reply=reply,
        more=min(limit * 4, MAX_HISTORY) if more else None,
        error=error,
        **shown(whose, "conversations"),
    )
