"""The user that a page is about."""

from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlencode

from mnemon.admin.forms.fields import Fields
from mnemon.admin.page import Visit
from mnemon_contracts.subjects import encode_token
from mnemon_producers.client import MemoryClient

TABS: Final = (
    ("facts", "Facts"),
    ("conversations", "Conversations"),
    ("context", "Context"),
    ("data", "Data and tasks"),
    ("erase", "Erase"),
)
"""Paths and titles of the pages of a user."""


@dataclass(frozen=True, slots=True)
class PageUser:
    """A user of a tenant, and the log position that a page about the user has to reflect.

    Attributes:
        seq: log position of a change that replies must include: the page waits for it. None: no wait.
    """

    tenant: str
    user: str
    seq: int | None = None

    @classmethod
    def from_fields(cls, given: Fields) -> Self:
        """Return the user that a query string or a form names.

        Raises:
            mnemon_contracts.subjects.InvalidId: the id of the user or of the tenant is invalid.
            InvalidBody: `seq` is not a log position.
        """
        tenant, user = (given.get(name, "") for name in ("tenant", "user"))
        encode_token(tenant)
        encode_token(user)
        return cls(tenant, user, given.get_number("seq"))

    def build_path(self, page: str, **more: str) -> str:
        """Return the path of one of the user's pages."""
        return f"/user/{page}?{urlencode({'tenant': self.tenant, 'user': self.user} | more)}"

    async def connect_memory(self, visit: Visit) -> MemoryClient:
        """Return a client with which the pages read and change memory, as a bot of the user's tenant does.

        Raises:
            BrokerUnreachable: the broker does not answer.
        """
        return MemoryClient(await visit.connections.get_broker(), tenant=self.tenant)


def build_frame_values(page_user: PageUser, tab: str) -> dict[str, Any]:
    """Return the values for the template `user/frame.html`, which all pages of the user extend."""
    return {"owner": page_user, "tab": tab, "tabs": TABS}
