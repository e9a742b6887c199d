"""Overview: what runs, and how far it is."""

from starlette.responses import Response

from mnemon.admin.visiting import Pages, Visit

pages = Pages("Overview", "/")


@pages.get("/")
async def overview(visit: Visit) -> Response:
    """The first page."""
    connection = await visit.parts.broker()
    server = connection.connected_server_version
    return visit.page("overview.html", broker=f"{server.major}.{server.minor}.{server.patch}")
