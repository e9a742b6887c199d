"""Users: list of the users of a tenant."""

from typing import Final

from starlette.responses import Response

from mnemon.admin.page import PageSection, Visit
from mnemon_contracts.base import ID_LIMIT
from mnemon_infra.database.memory import users as stored
from mnemon_infra.database.memory.user_memory import load_user_counts

pages = PageSection("Users", "/users")

PAGE_SIZE: Final = 25
"""Maximum number of users on a page."""

_MAX_TENANTS: Final = 500


@pages.get("/users")
async def show_users(visit: Visit) -> Response:
    """Show the users of a tenant, or only those whose ids begin with a given text."""
    database = await visit.connections.get_database()
    tenants = await database.run_query(stored.list_tenants(_MAX_TENANTS))
    tenant = visit.query.get("tenant", "").strip() or (tenants[0] if len(tenants) == 1 else "")
    begins, after = visit.query.get("begins", "").strip(), visit.query.get("after", "")
    error = _check_prefix(begins)
    found: list[str] = []
    if tenant and not error:
        found = await database.run_query(stored.list_users(tenant, begins, after, PAGE_SIZE + 1))
    page = found[:PAGE_SIZE]
    counted = await database.run_query(load_user_counts([(tenant, user) for user in page])) if page else []
    return visit.render(
        "users.html",
        tenants=tenants,
        tenant=tenant,
        begins=begins,
        after=after,
        error=error,
        rows=list(zip(page, counted, strict=True)),
        further=page[-1] if len(found) > PAGE_SIZE else None,
    )


def _check_prefix(begins: str) -> str:
    if len(begins.encode()) > ID_LIMIT:
        return f"An id has at most {ID_LIMIT} bytes; enter a shorter text."
    return ""
