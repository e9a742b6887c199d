"""Run of a move: copies events while bots keep talking, verifies the copy, and switches in a write pause.

The logs tell which events are copied, and the settings buckets of both deployments have the state. So a run
that was killed at any point is continued by the next one.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from shlex import quote
from typing import Final, Literal

import msgspec
import structlog
from nats.js.errors import NotFoundError
from tenacity import AsyncRetrying, retry_if_not_result, stop_after_delay, wait_fixed

from mnemon.display_text import format_count
from mnemon.operations.tenant_move.api_keys import copy_api_keys
from mnemon.operations.tenant_move.copy import TenantCopy, require_no_foreign_events
from mnemon.operations.tenant_move.deployment import (
    POLL_SECONDS,
    SETTLE_SECONDS,
    MoveDiffers,
    MoveRefused,
    TenantSite,
    hold_move_leases,
)
from mnemon.operations.tenant_move.events import SourceEvent
from mnemon.operations.tenant_move.late_events import ERASED, has_own_messages, is_removal
from mnemon.operations.tenant_move.move_start import MoveStart, require_no_batches
from mnemon.operations.tenant_move.proposals import repeat_undecided_proposals
from mnemon.operations.tenant_move.stale_calls import remove_stale_calls
from mnemon.operations.tenant_move.verification import compare_logs, compare_tenant_rows
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.groups import build_settings_key
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_owner_filter, find_origin
from mnemon_infra.broker.provisioning.raised_position import raise_last_position
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.broker.streams.triggers import publish_user_triggers
from mnemon_infra.database.audit.tenant_rows import count_busy_windows, list_tenant_users
from mnemon_infra.settings.bucket import open_bucket, read_newest_of_tenant
from mnemon_infra.settings.store import change_settings

log = structlog.get_logger("move")

MoveStep = Literal["copy", "positions", "verification of events", "verification of rows", "switch"]

MoveProgress = Callable[[MoveStep, int, int], None]
"""Function that receives the step, its progress and its end, both in log positions or in users.

For the step `switch` these are 0 and 1.
"""

CLOSE: Final = 200
"""Maximum number of events of a pass after which the copy counts as caught up."""

DRAIN_SECONDS: Final = 60.0
"""Maximum seconds to wait for answers of language models. Later answers are forwarded as late events."""

WAKE_SECONDS: Final = 1.0
"""Seconds until proposals are repeated: a process that has not noticed the switch yet ignores them."""

READER_SECONDS: Final = 5.0
"""Maximum seconds to find a process that runs `persist`: between two batches, it has no open pull request."""

PAUSE_SECONDS: Final = 30.0
"""Maximum seconds of the write pause. After that the run fails, and the source serves the tenant."""

ROWS_SECONDS: Final = 20.0
"""Maximum seconds until both databases have the same rows: removals of content lag behind their events."""

FORWARD_SECONDS: Final = 5.0
"""Seconds after which no further pass forwards late events. A bot that keeps writing to the source would
otherwise keep the run from ending; `mnemon tenant status` counts the late events that are left.
"""

POSITION_MARGIN: Final = 10_000
"""Number of positions by which the end of the target's log is raised above the end of the source's.

This applies to a target's log that is behind. The write pause then seldom needs fillers.
"""

TRIGGERED: Final = "compact", "extract"


@dataclass(frozen=True, slots=True)
class MoveResult:
    """Result of one run of `mnemon tenant move`, `confirm` or `revert`.

    Attributes:
        events: events of the source's log that the target's log has, including placeholders.
        rows: rows of the source that were compared; a row counts each time it was compared.
        fillers: number of fillers that raised the last position of the target's log above the source's.
        forwarded: events that arrived in the source's log after the switch, and were copied.
        withheld: late events that were not copied, because they remove messages: subjects and positions.
        proposals: undecided proposals that were proposed again.
        pause_seconds: duration of the write pause, in the run that switched.
        seconds: duration of this run.
        is_repeated: whether an earlier run had switched.
        is_confirmed: whether the move was confirmed before this run.
    """

    events: int = 0
    rows: int = 0
    fillers: int = 0
    forwarded: int = 0
    withheld: tuple[str, ...] = ()
    proposals: int = 0
    pause_seconds: float = 0.0
    seconds: float = 0.0
    is_repeated: bool = False
    is_confirmed: bool = False


class TenantMove:
    """Move of a tenant from one deployment, the source, to another, the target.

    Args:
        source: the tenant in the deployment where it lives now.
        target: the tenant in the deployment to which it moves.
        addresses: addresses of the source's and the target's NATS servers for bots, without a login.
        progress: receives the progress.
        is_returning: whether this reverts a move that is not confirmed.
    """

    def __init__(
        self,
        source: TenantSite,
        target: TenantSite,
        addresses: tuple[str, str],
        progress: MoveProgress,
        *,
        is_returning: bool = False,
    ) -> None:
        self._source, self._target = source, target
        self._source_address, self._target_address = addresses
        self._progress = progress
        self._is_returning = is_returning
        self._start = MoveStart(source, target, addresses, is_returning=is_returning)
        self._tenant = source.tenant
        self._result = MoveResult()

    async def perform(self) -> MoveResult:
        """Move the tenant, or continue the move; after the switch, forward events that arrived late.

        Raises:
            MoveRefused: the move cannot begin or continue, for example because the tenant's settings do not
                satisfy the contract together with the target's general settings.
            LeaseLost: the lease was lost, so that another command may move the tenant now.
            MoveDiffers: the copy differs from the original; the tenant stays where it is.
            MessageTooLarge: the target takes no message as large as one of the events.
            SettingsNotProvisioned: a deployment has no bucket of settings.
            ResidenceInvalid: a stored residence is invalid, or of a newer version.
            DatabaseUnavailable, nats.errors.Error: a server does not answer. The call can be repeated.
        """
        begun = time.monotonic()
        await self._require_readers()
        async with hold_move_leases(self._source, self._target):
            residence = await self._start.begin_or_continue_move()
            copy = TenantCopy(
                self._source.connection,
                self._target.connection,
                self._tenant,
                residence.move_id,
                self._is_returning,
            )
            await copy.load_positions()
            if residence.state == "moved":
                self._result = replace(
                    self._result,
                    is_repeated=True,
                    is_confirmed=residence.is_confirmed,
                    pause_seconds=residence.pause,
                )
            else:
                if not self._is_returning:
                    require_no_foreign_events(copy, self._tenant)
                    await remove_stale_calls(copy, self._source, self._target)
                await self._prepare_switch(copy)
                await self._switch_tenant(copy)
            await self._forward_late_events(copy)
            await asyncio.sleep(WAKE_SECONDS)
            await self._wake_consumers()
        return replace(self._result, events=len(copy.positions), seconds=time.monotonic() - begun)

    async def _require_readers(self) -> None:
        """Check that both deployments write rows, for which the move waits."""
        for site, address in (
            (self._source, self._source_address),
            (self._target, self._target_address),
        ):
            if not await _wait_until(site.has_reader, READER_SECONDS):
                raise MoveRefused(
                    f"no process runs persist at {address}: start the consumers there (`mnemon up` or `mnemon"
                    " run`)"
                )

    async def _prepare_switch(self, copy: TenantCopy) -> None:
        """Copy settings and events while bots talk, and wait for running calls of language models."""
        await self._copy_settings()
        await self._catch_up(copy)
        end = await self._source.read_end()
        fillers = await raise_last_position(
            self._target.connection,
            end + POSITION_MARGIN if await self._target.read_end() < end else 0,
            lambda reached, last: self._progress("positions", reached, last),
        )
        self._result = replace(self._result, fillers=fillers)
        await self._set_source_state("draining")
        try:
            await _wait_until(self._has_drained, DRAIN_SECONDS)
            await require_no_batches(self._source)
        except MoveRefused:
            await self._set_source_state("copying")
            raise
        await self._catch_up(copy)

    async def _has_drained(self) -> bool:
        return not await self._source.database.run_query(count_busy_windows(self._tenant))

    async def _catch_up(self, copy: TenantCopy) -> None:
        """Copy until a pass has at most `CLOSE` events, or more than half as many as the pass before.

        After each pass, wait until both databases have the rows.
        """
        former = 0
        while True:
            end = await self._source.read_end()
            copied = await self._copy_up_to(copy, end)
            await self._await_rows(copy, end)
            if copied <= CLOSE or 0 < former < 2 * copied:
                return
            former = copied

    async def _copy_up_to(self, copy: TenantCopy, end: int) -> int:
        return await copy.copy_events(end, self._report_copied)

    async def _await_rows(self, copy: TenantCopy, end: int) -> None:
        await _wait_until(lambda: self._source.has_applied(end))
        await _wait_until(lambda: self._target.has_applied(copy.positions.last_new))

    async def _switch_tenant(self, copy: TenantCopy) -> None:
        """Verify the copy, pause writes, copy and verify the remaining events, and let the target serve."""
        verified, doubtful = 0, set[str]()
        for is_first in (True, False):  # the second time for events that came meanwhile
            await self._catch_up(copy)
            compared = None if is_first else sorted({*copy.changed, *doubtful})
            copy.changed = set()
            after, verified = verified, copy.reached
            await self._compare_logs(copy, after, verified)
            doubtful = set(await self._compare_rows(copy, compared, verified))
        begun = time.monotonic()
        await self._set_source_state("leaving")
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                await asyncio.sleep(SETTLE_SECONDS)
                end = await self._source.read_end()
                await self._copy_up_to(copy, end)
                await self._copy_settings()
                await copy_api_keys(self._source, self._target)
                await raise_last_position(self._target.connection, end, lambda *_: None)
                await self._await_rows(copy, end)
                await self._compare_logs(copy, verified, end)
                await self._require_same_rows(copy, {*copy.changed, *doubtful}, end)
        except BaseException as error:
            await asyncio.shield(self._set_source_state("copying"))
            if isinstance(error, TimeoutError):
                raise MoveRefused(
                    f"the write pause took more than {PAUSE_SECONDS:.0f} s, or a server did not answer"
                    f" in time, so the tenant {self._tenant} stays where it is: run the same command again"
                    " when the servers are less busy"
                ) from error
            raise
        await self._complete_switch(copy, end, begun)

    async def _complete_switch(self, copy: TenantCopy, end: int, begun: float) -> None:
        source, former = self._source.residence, self._target.residence
        assert source is not None
        assert former is not None
        await self._target.write_residence(
            msgspec.structs.replace(
                former,
                state="here",
                peer=self._source_address,
                first=former.first or copy.first_copy,
                last=copy.last_copy or former.last,
                is_returning=self._is_returning,
            )
        )
        pause = time.monotonic() - begun
        await self._source.write_residence(
            msgspec.structs.replace(
                source,
                state="moved",
                peer=self._target_address,
                copied=end,
                former=None,
                pause=round(pause, 3),
            )
        )
        pause = time.monotonic() - begun
        self._result = replace(self._result, pause_seconds=pause)
        log.info("tenant moved", tenant=self._tenant, pause_seconds=round(pause, 3))

    async def _compare_logs(self, copy: TenantCopy, after: int, up_to: int) -> None:
        differences = await compare_logs(copy, self._source, after, up_to)
        self._progress("verification of events", up_to, up_to)
        if differences:
            raise MoveDiffers(
                f"the copies of {format_count(len(differences), 'event')} of {self._tenant} are wrong; the"
                f" first: {differences[0]}. Run the same command again; if the command fails again, report"
                " the difference as a bug"
            )

    async def _compare_rows(self, copy: TenantCopy, users: list[str] | None, up_to: int) -> dict[str, str]:
        """Compare the rows of `users`, or of all users if None; return the first difference of each user.

        Users without a difference are left out. A later removal may be the cause of a difference.
        """
        result = await compare_tenant_rows(
            copy,
            self._source,
            self._target,
            users,
            up_to,
            lambda reached, last: self._progress("verification of rows", reached, last),
        )
        self._result = replace(self._result, rows=self._result.rows + result.rows)
        return result.users

    async def _require_same_rows(self, copy: TenantCopy, users: set[str], up_to: int) -> None:
        """Compare the rows of users until they are the same.

        Raises:
            MoveDiffers: rows still differ after `ROWS_SECONDS`.
        """
        end = time.monotonic() + ROWS_SECONDS
        while users:
            different = await self._compare_rows(copy, sorted(users), up_to)
            if different and time.monotonic() > end:
                raise MoveDiffers(
                    f"the rows of {format_count(len(different), 'user')} of {self._tenant} differ between the"
                    " deployments; the first difference: "
                    f"{next(iter(different.values()))}. Run the same command again; if the command "
                    "fails again, report the difference as a bug"
                )
            users = set(different)
            await asyncio.sleep(POLL_SECONDS * bool(users))

    async def _forward_late_events(self, copy: TenantCopy) -> None:
        """Copy events that arrived in the source's log after the switch, except those that are withheld.

        Passes are repeated until no event arrives during a pass, or `FORWARD_SECONDS` are over.
        """
        residence = self._source.residence
        assert residence is not None
        forwarded, since = 0, residence.copied
        end = time.monotonic() + FORWARD_SECONDS
        while await read_last_position(self._source.connection, build_owner_filter(self._tenant)) > since:
            since = await self._source.read_end()
            await raise_last_position(self._target.connection, since, lambda *_: None)
            forwarded += await copy.copy_events(since, self._report_copied, self._is_withheld)
            if time.monotonic() > end:
                break
        if since != residence.copied:
            withheld = *residence.withheld, *await self._list_withheld(copy, residence.copied, since)
            residence = msgspec.structs.replace(residence, copied=since, withheld=withheld)
            await self._source.write_residence(residence)
        described = [await self._describe_event(each) for each in residence.withheld]
        self._result = replace(self._result, forwarded=forwarded, withheld=tuple(filter(None, described)))

    async def _is_withheld(self, event: SourceEvent) -> bool:
        """Return whether a late event stays in the source's log alone.

        A `cleared`, or a `started` that discards messages, stays if the target has received a chat event of
        the user since the switch. An erasure stays once the move is confirmed.
        """
        source, target = self._source.residence, self._target.residence
        origin = find_origin(event.delivery.subject)
        assert source is not None
        assert target is not None
        if event.name == ERASED:
            return source.is_confirmed  # it erases the copy that stayed
        if origin is None or not is_removal(event):
            return False
        return await has_own_messages(self._target.connection, *origin.owner, target.last)

    async def _list_withheld(self, copy: TenantCopy, after: int, up_to: int) -> list[int]:
        return [
            event.position
            async for event in copy.read_source(after, up_to)
            if copy.positions.find(event.position) is None
            and not copy.is_from_target(event)
            and event.name != ERASED
        ]

    async def _describe_event(self, position: int) -> str | None:
        try:
            message = await self._source.connection.jetstream().get_msg(LOG, position)
        except NotFoundError:
            return None  # erased since
        return f"{message.subject} at position {position:,}"

    def _report_copied(self, reached: int, last: int) -> None:
        self._progress("copy", reached, last)

    async def _wake_consumers(self) -> None:
        """Publish triggers for `compact` and `extract` of the target; propose undecided proposals again."""
        end = await self._target.read_end()
        await _wait_until(lambda: self._target.has_applied(end))
        users = await self._target.database.run_query(list_tenant_users(self._tenant))
        await publish_user_triggers(
            self._target.connection, TRIGGERED, {(self._tenant, user): end for user in users}
        )
        proposals = await repeat_undecided_proposals(self._target)
        self._result = replace(self._result, proposals=proposals)

    async def _set_source_state(self, state: Literal["copying", "draining", "leaving"]) -> None:
        assert self._source.residence is not None
        await self._source.write_residence(msgspec.structs.replace(self._source.residence, state=state))
        self._progress("switch", 0, 1)

    async def _copy_settings(self) -> None:
        """Copy the tenant's own settings to the target.

        Raises:
            MoveRefused: the settings are invalid together with the target's general settings.
        """
        key = build_settings_key(self._tenant)
        bucket = await open_bucket(self._source.connection)
        own = (await read_newest_of_tenant(bucket, key)).document
        other = await open_bucket(self._target.connection)
        if own != (await read_newest_of_tenant(other, key)).document:
            try:
                await change_settings(self._target.connection, lambda _: own, self._tenant)
            except InvalidBody as error:
                raise MoveRefused(
                    f"the settings of the tenant {self._tenant} do not fit the general settings at"
                    f" {self._target_address}: {error}. Change the settings of the tenant at"
                    f" {self._source_address} (mnemon settings set --tenant {quote(self._tenant)}"
                    f" NAME=VALUE), or the general settings at {self._target_address}, then run the same"
                    " command again"
                ) from error


async def _wait_until(holds: Callable[[], Awaitable[bool]], seconds: float = math.inf) -> bool:
    """Wait until a condition holds; return False if it does not hold within `seconds`."""
    waiting = AsyncRetrying(
        retry=retry_if_not_result(bool),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(POLL_SECONDS),
        retry_error_callback=lambda _: False,
    )

    async def check_condition() -> bool:
        return await holds()

    return await waiting(check_condition)
