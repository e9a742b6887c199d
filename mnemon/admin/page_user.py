"""Whose memory a page is about."""

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
"""The pages of a user, and how they are called."""


@dataclass(frozen=True, slots=True)
class PageUser:
    """A user of a tenant; `seq` is the position of the last change made here, which a page has to reflect."""

    tenant: str
    user: str
    seq: int | None = None

    @classmethod
    def of(cls, given: Fields) -> Self:
        """Whom an address or a form names.

        Raises:
            mnemon_contracts.subjects.InvalidId: there can be no such user, or no such tenant.
            InvalidBody: `seq` is no position.
        """
        tenant, user = (given.get(name, "") for name in ("tenant", "user"))
        encode_token(tenant)
        encode_token(user)
        return cls(tenant, user, given.number("seq"))

    def path(self, page: str, **more: str) -> str:
        """The address of one of the user's pages."""
        return f"/user/{page}?{urlencode({'tenant': self.tenant, 'user': self.user} | more)}"

    async def memory(self, visit: Visit) -> MemoryClient:
        """What a bot of the tenant has.

        Raises:
            mnemon_infra.broker.connection.BrokerUnreachable: the broker does not answer.
        """
        return await visit.parts.memory(self.tenant)


def shown(whose: PageUser, tab: str) -> dict[str, Any]:
    """What the frame of the user's pages needs."""
    return {"whose": whose, "tab": tab, "tabs": TABS}
