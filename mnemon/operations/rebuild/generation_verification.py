"""Verification of live rows and vectors: comparison with a generation that was just made from the log."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from time import monotonic
from typing import Final
from uuid import UUID

from mnemon.operations.rebuild.generations import GenerationProgress, GenerationReplay
from mnemon.operations.rebuild.live_vectors import list_unswept_owners
from mnemon.operations.rebuild.vector_comparison import ComparedPoints, compare_points, name_table
from mnemon.operations.rebuild.vector_replay import VectorReplay
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import InvalidSubject, parse_subject
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.stream_reader import read_stream
from mnemon_infra.broker.streams.triggers import has_waiting_sweep
from mnemon_infra.database.generations.comparison import Difference
from mnemon_infra.rebuild.generations import Site
from mnemon_infra.rebuild.row_verification import (
    MOST_COMPARISONS,
    MOST_DIFFERENCES,
    SETTLE_WAIT,
    RowVerification,
    RowVerifier,
)
from mnemon_infra.vectors.port import Collection, PointPages

_PAUSE: Final = 0.1


class GenerationVerification:
    """Comparison of the live rows, then the live vectors, with a generation made from the log.

    Differences are compared again, because both sides may have changed.
    """

    def __init__(
        self,
        site: Site,
        replay: GenerationReplay,
        live: PointPages | None,
        progress: GenerationProgress,
        *,
        timeout_seconds: float = SETTLE_WAIT,
    ) -> None:
        """Create a verification.

        Args:
            site: the deployment and its connections.
            replay: the generation to compare with.
            live: the vectors in use; None without vectors.
            progress: receives the progress.
            timeout_seconds: seconds to wait for the consumers that write rows and vectors.
        """
        self._site = site
        self._generation = replay
        self._live = live
        self._progress = progress
        self._timeout_seconds = timeout_seconds
        self._rows = RowVerifier(site, replay.rows, progress, timeout_seconds=timeout_seconds)

    async def compare_all(self) -> RowVerification:
        """Compare all rows and vectors; the result has each collection of vectors as a further table.

        Raises:
            nats.errors.Error, DatabaseUnavailable, VectorsUnavailable, EmbeddingUnavailable: a server does
                not answer.
        """
        verdict = await self._rows.verify()
        if self._generation.vectors and self._live:
            verdict.is_settled &= await self._reach_same_position(self._generation.vectors)
            for collection in Collection:
                await self._compare_collection(collection, self._generation.vectors, self._live, verdict)
        return verdict

    async def _compare_collection(
        self, collection: Collection, rebuilt: VectorReplay, live: PointPages, verdict: RowVerification
    ) -> None:
        name = name_table(collection)
        points = count = 0
        begin: UUID | None = None
        while True:
            page = await self._compare_page(collection, rebuilt, live, begin)
            points += page.points
            count += len(page.differences)
            verdict.first += page.differences[: MOST_DIFFERENCES - len(verdict.first)]
            begin = page.following
            if begin is None:
                break
        verdict.rows[name] = points
        if count:
            verdict.counts[name] = count

    async def _compare_page(
        self, collection: Collection, rebuilt: VectorReplay, live: PointPages, begin: UUID | None
    ) -> ComparedPoints:
        page = await compare_points(collection, live, rebuilt.index.vectors, begin)
        is_settled = True
        for _ in range(MOST_COMPARISONS):
            if not page.differences:
                return page
            before = rebuilt.reached
            is_settled = await self._reach_same_position(rebuilt)
            page = await compare_points(collection, live, rebuilt.index.vectors, begin)
            if is_settled and rebuilt.reached == before:
                break
        if page.differences and not is_settled:
            return page._replace(differences=await self._drop_delayed_differences(page.differences))
        return page

    async def _reach_same_position(self, rebuilt: VectorReplay) -> bool:
        """Bring the live and the rebuilt vectors to one log position.

        Return whether `index` has reached the end of the log in time, with no sweep left.
        """
        await self._rows.catch_up()
        end = monotonic() + self._timeout_seconds
        # Poll, as for `persist`: no message announces the position.
        while not (settled := await self._is_settled()) and monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE)
        position = self._generation.rows.reached
        await rebuilt.replay_to(position, lambda reached: self._progress.report_vectors(reached, position))
        return settled

    async def _is_settled(self) -> bool:
        return (
            not await has_waiting_sweep(self._site.connection, "index")
            and await self._read_indexed_position() >= await self._site.load_log_end()
        )

    async def _read_indexed_position(self) -> int:
        return await read_applied_position(self._site.connection.jetstream(), "index")

    async def _drop_delayed_differences(self, differences: Sequence[Difference]) -> list[Difference]:
        """Return the differences of users for whom `index` has no work left; the rest may be delays."""
        moving = await list_unswept_owners(self._site.connection)
        after = min(await self._read_indexed_position(), self._generation.rows.reached)
        reading = read_stream(self._site.connection, LOG, after=after, up_to=await self._site.load_log_end())
        async with aclosing(reading) as pages:
            async for page in pages:
                for _, delivery in page:
                    try:
                        address = parse_subject(delivery.subject)
                    except InvalidSubject:
                        continue
                    moving.add(address.owner)
        return [each for each in differences if (each.key["tenant"], each.key["user_id"]) not in moving]
