"""Redecide, user by user: finds the corrections that other settings require, and appends their events.

The events are appended under the user's lock, in atomic batches. Rows, vectors and caches follow from them as
from any other events.
"""

from datetime import UTC, datetime
from typing import Final

from nats.aio.client import Client

from mnemon_consumers.dedupe.comparison import Likeness
from mnemon_consumers.dedupe.redecide.corrections import Correction, CorrectionPlan, build_corrections
from mnemon_consumers.dedupe.redecide.plan import FactVectors, collect_texts, redecide_proposals
from mnemon_consumers.dedupe.state.log import Logged, build_log_event, fold_log
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import Owner, build_thing_filter
from mnemon_infra.broker.erasure.purge import read_erasures
from mnemon_infra.broker.streams.log_writer import append_events
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.database.projections.logged_events import stream_events
from mnemon_infra.database.projections.rows import get_event_time
from mnemon_infra.health.clock_skew import read_log_time
from mnemon_infra.models.embedders.wordllama import load_word_similarity
from mnemon_infra.models.embedding import Dense, Embedder

EMBEDDED_AT_ONCE: Final = 500
"""Maximum number of texts per request to the embedder."""


class Redecider:
    """Decides again on the proposals of one user at a time, and keeps no state between users."""

    def __init__(self, connection: Client, database: Database, embedder: Embedder) -> None:
        self._connection = connection
        self._database = database
        self._embedder = embedder

    async def find_corrections(self, owner: Owner, settings: SettingsV1) -> list[Correction]:
        """Return the corrections that other settings require; append nothing to the log.

        Raises:
            EmbeddingUnavailable, nats.errors.Error: the embedder or the log does not answer now.
            ValueError: one of the user's proposals cannot be decided by this version.
        """
        return (await self._plan_corrections(owner, settings, {})).corrections

    async def append_corrections(self, owner: Owner, settings: SettingsV1) -> list[Correction]:
        """Append the events of the corrections to the log, under the user's lock; return the corrections.

        After a complete call, another call with the same settings finds nothing to correct.

        Raises:
            DatabaseUnavailable: another process holds the user's lock, or the database does not answer.
            EmbeddingUnavailable: the embedder does not answer now. Nothing is appended.
            ValueError: one of the user's proposals cannot be decided by this version. Nothing is appended.
            nats.errors.Error: NATS does not answer now. The log may have some of the events; the call can be
                repeated.
        """
        meanings: dict[str, Dense] = {}
        if not (await self._plan_corrections(owner, settings, meanings)).events:
            return []
        async with hold_lock(self._database, *owner):
            needed = await self._plan_corrections(owner, settings, meanings)
            await append_events(self._connection, [build_log_event(owner, each) for each in needed.events])
        return needed.corrections

    async def _plan_corrections(
        self, owner: Owner, settings: SettingsV1, meanings: dict[str, Dense]
    ) -> CorrectionPlan:
        """Return the corrections and their events; add the vectors of new texts to `meanings`."""
        log = await self._read_log(owner)
        found = fold_log(log)
        absent = sorted(collect_texts(log, found) - meanings.keys())
        for start in range(0, len(absent), EMBEDDED_AT_ONCE):
            some = absent[start : start + EMBEDDED_AT_ONCE]
            meanings |= zip(some, await self._embedder.embed(some), strict=True)
        likeness = Likeness(self._embedder.model, self._embedder.thresholds, load_word_similarity())
        redecided = redecide_proposals(log, found, settings, FactVectors(likeness, meanings))
        return build_corrections(
            owner, found, redecided, settings.limits, await read_log_time(self._connection)
        )

    async def _read_log(self, owner: Owner) -> list[Logged]:
        erased = await read_erasures(self._connection, owner)
        pattern, after = build_thing_filter(*owner, "fact"), max(erased.below - 1, 0)
        return [
            (each.event, each.id, datetime.fromtimestamp(get_event_time(each.event, each.delivery), UTC))
            async for each in stream_events(self._connection, pattern, after)
            if not erased.removes_fact(each.seq, getattr(each.event, "lineage", None))
        ]
