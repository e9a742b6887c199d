"""What is asked about a stretch of a conversation."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from consumers.extract.decide import said, worth_reading
from consumers.extract.prompt import request
from contracts.settings import SettingsV1
from infra.database.engine import Connection
from infra.database.facts import StoredFact, live_facts
from infra.database.stretches import spoken
from infra.database.windows import StoredWindow
from infra.models.language.port import KnownFact, Request, Said
from infra.settings.store import LiveSettings


@dataclass(frozen=True, slots=True)
class Question:
    """A stretch, as it stands now.

    Attributes:
        said: what is worth reading of it and not gone, oldest first; nothing, once it was cleared.
        known: the user's facts, most important first.
        settings: of the tenant.
    """

    window: StoredWindow
    said: Sequence[Said]
    known: Sequence[KnownFact]
    settings: SettingsV1

    def request(self) -> Request:
        """What a model is asked."""
        extraction = self.settings.extraction
        return request(self.said, self.known[: extraction.known_facts], extraction)


async def questions(
    connection: Connection, windows: Sequence[StoredWindow], settings: LiveSettings, now: datetime
) -> list[Question]:
    """What there is to ask about each of some stretches."""
    owners = list(dict.fromkeys(window.owner for window in windows))
    rows = await spoken(windows)(connection)
    facts = dict(zip(owners, await live_facts(owners)(connection), strict=True))
    known = {owner: _known(of, now) for owner, of in facts.items()}
    asked = []
    for window, messages in zip(windows, rows, strict=True):
        await asyncio.sleep(0)  # whoever else waits goes first: a bot, perhaps
        of = settings.of(window.tenant)
        worthy = [row for row in messages if worth_reading(row.role, row.content, row.metadata, row.name)]
        asked.append(Question(window, said(worthy, of.time_stamps.zone), known[window.owner], of))
    return asked


def _known(facts: Sequence[StoredFact], now: datetime) -> list[KnownFact]:
    live = [fact for fact in facts if fact.expires_at is None or fact.expires_at > now]
    live.sort(key=lambda fact: (fact.importance, fact.changed_at), reverse=True)
    return [KnownFact(fact.id, fact.text) for fact in live]
