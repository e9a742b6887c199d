"""Requests about windows, with undecided pairs of facts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Self
from zoneinfo import ZoneInfo

from mnemon_consumers.extract.message_selection import is_worth_reading
from mnemon_consumers.extract.pair_selection import select_open_pairs
from mnemon_consumers.extract.prompt import build_prompt_messages, build_request
from mnemon_contracts.fact_pairs import FactPair
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection
from mnemon_infra.database.facts.fact_repository import FactRecord, load_facts
from mnemon_infra.database.facts.undecided_pairs import PairsByLine, load_pair_records
from mnemon_infra.database.messages.message_ranges import stream_messages
from mnemon_infra.database.windows.window_repository import StoredWindow
from mnemon_infra.models.language.port import ModelRequest, PromptFact, PromptMessage
from mnemon_infra.settings.store import LiveSettings


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """Request about a window, with the window's current content.

    Attributes:
        messages: the messages of the window that are worth reading and still visible, oldest first, as a
            model is shown them; empty if none is left, as after a clear.
        known: the user's facts that have not expired, most important first.
        pairs: undecided pairs that the request also asks about. `known` has their facts, except those that
            have ended or expired since the request was sent.
    """

    window: StoredWindow
    messages: Sequence[PromptMessage]
    known: Sequence[PromptFact]
    settings: SettingsV1
    pairs: Sequence[FactPair] = ()

    @property
    def may_have_pairs(self) -> bool:
        """Return whether the request may ask about pairs.

        The request may do so if a model is asked, the settings allow pairs, and no earlier attempt failed.
        """
        extraction = self.settings.extraction
        is_asked = extraction.provider != "offline" and bool(self.messages)
        return is_asked and extraction.pairs > 0 and self.window.attempts == 0

    @property
    def listed_facts(self) -> Sequence[PromptFact]:
        """Return the known facts that the request lists."""
        return self.known[: self.settings.extraction.known_facts]

    @property
    def shown_facts(self) -> Sequence[PromptFact]:
        """Return the known facts that the model is shown: the listed facts, and those of pairs."""
        ids = {fact.id for fact in self.listed_facts}
        ids.update(fact_id for pair in self.pairs for fact_id in (pair.fact_id, pair.other_id))
        return [fact for fact in self.known if fact.id in ids]

    def with_batch_pairs(self, pairs: PairsByLine) -> Self:
        """Return the request with the pairs that its line of the batch asked about.

        An answer about any other pair is ignored.
        """
        return replace(self, pairs=pairs.get((self.window.owner, self.window.line or 0), ()))

    def build_model_request(self) -> ModelRequest:
        """Return the request in the form that is sent to a model."""
        known = {fact.id: fact for fact in self.known}
        pairs = [(known[pair.fact_id], known[pair.other_id]) for pair in self.pairs]
        return build_request(self.messages, self.listed_facts, self.settings.extraction, pairs)


@dataclass(slots=True)
class AskedPairs:
    """Pairs of facts that requests already ask about, so that no pair is in two requests.

    Attributes:
        batch_id: the batch of the requests; None for single requests.
    """

    batch_id: str | None = None
    pairs: set[tuple[Owner, FactPair]] = field(default_factory=set)


async def build_window_requests(
    connection: Connection,
    windows: Sequence[StoredWindow],
    settings: LiveSettings,
    now: datetime,
    asked_pairs: AskedPairs | None = None,
) -> list[WindowRequest]:
    """Build the request of each window.

    Args:
        connection: connection to the projections.
        windows: the windows.
        settings: settings of all tenants.
        now: the current time; facts that have expired by then are left out.
        asked_pairs: pairs of other requests; the pairs of the new requests are added. None makes requests
            without pairs.
    """
    owners = list(dict.fromkeys(window.owner for window in windows))
    shown = await _load_prompt_messages(connection, windows, settings)
    found = zip(owners, await load_facts(owners)(connection), strict=True)
    facts = {owner: _list_unexpired_facts(of, now) for owner, of in found}
    asked = []
    for window, messages in zip(windows, shown, strict=True):
        await asyncio.sleep(0)  # let other tasks run, such as a bot's request
        of = settings.get_settings(window.tenant)
        known = _build_prompt_facts(facts[window.owner], of.time_stamps.zone)
        asked.append(WindowRequest(window, messages, known, of))
    if asked_pairs is None:
        return asked
    return await _add_pairs(connection, asked, facts, asked_pairs)


async def _load_prompt_messages(
    connection: Connection, windows: Sequence[StoredWindow], settings: LiveSettings
) -> list[list[PromptMessage]]:
    """Return for each window its messages that are worth reading, as a model is shown them."""
    shown: list[list[PromptMessage]] = [[] for _ in windows]
    async for number, rows in stream_messages(connection, [window.message_range for window in windows]):
        await asyncio.sleep(0)
        worthy = [row for row in rows if is_worth_reading(row.role, row.content, row.metadata, row.name)]
        zone = settings.get_settings(windows[number].tenant).time_stamps.zone
        shown[number] += build_prompt_messages(worthy, zone)
    return shown


async def _add_pairs(
    connection: Connection,
    requests: Sequence[WindowRequest],
    facts: Mapping[Owner, Sequence[FactRecord]],
    asked_pairs: AskedPairs,
) -> list[WindowRequest]:
    """Return the requests, with pairs where a request may have pairs."""
    owners = {question.window.owner for question in requests if question.may_have_pairs}
    records = await load_pair_records(owners, asked_pairs.batch_id)(connection) if owners else {}
    waiting = {
        owner: iter(
            [
                pair
                for pair in select_open_pairs(record, {fact.id: fact for fact in facts[owner]})
                if (owner, pair) not in asked_pairs.pairs
            ]
        )
        for owner, record in records.items()
    }
    questions = []
    for question in requests:
        owner = question.window.owner
        pairs = (
            list(islice(waiting[owner], question.settings.extraction.pairs))
            if owner in waiting and question.may_have_pairs
            else []
        )
        asked_pairs.pairs.update((owner, pair) for pair in pairs)
        questions.append(replace(question, pairs=pairs))
    return questions


def _list_unexpired_facts(facts: Sequence[FactRecord], now: datetime) -> list[FactRecord]:
    """Return the facts that have not expired, most important first."""
    live = [fact for fact in facts if fact.expires_at is None or fact.expires_at > now]
    return sorted(live, key=lambda fact: (fact.importance, fact.changed_at), reverse=True)


def _build_prompt_facts(facts: Sequence[FactRecord], zone: str) -> list[PromptFact]:
    local = ZoneInfo(zone)
    return [PromptFact(fact.id, fact.text, fact.saved_at.astimezone(local)) for fact in facts]
