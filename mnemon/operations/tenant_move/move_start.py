"""Start of a move or a revert: decides from both residences whether it may begin, and where it continues."""

import asyncio
from typing import Literal
from uuid import uuid4

import msgspec
import structlog

from mnemon.display_text import format_count
from mnemon.operations.tenant_move.deployment import (
    SETTLE_SECONDS,
    MoveRefused,
    TenantSite,
    describe_arrival,
)
from mnemon_contracts.subjects import build_owner_filter
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.database.audit.tenant_rows import count_batched_windows
from mnemon_infra.settings.residence import Residence, is_move_known

log = structlog.get_logger("move")


class MoveStart:
    """Start of a move; its arguments mean the same as those of `TenantMove`."""

    def __init__(
        self, source: TenantSite, target: TenantSite, addresses: tuple[str, str], *, is_returning: bool
    ) -> None:
        self._source, self._target = source, target
        self._source_address, self._target_address = addresses
        self._is_returning = is_returning
        self._tenant = source.tenant

    async def begin_or_continue_move(self) -> Residence:
        """Write the residences in both deployments, or resolve an interrupted switch.

        Returns:
            The residence of the source.

        Raises:
            MoveRefused: the move cannot begin or continue.
        """
        source, target = await self._source.load_residence(), await self._target.load_residence()
        if self._is_returning:
            return await self._begin_revert(source, target)
        if source is not None and source.state == "arriving":
            raise MoveRefused(describe_arrival(self._tenant, source))
        if source is None or source.state == "here":
            await self._require_movable(source)
            await require_no_batches(self._source)
            first, last = (0, 0) if source is None else (source.first, source.last)
            move_id = await self._find_abandoned(target) or uuid4().hex
            source = Residence("copying", move_id, self._target_address, first, last, former=source)
            self._require_free_target(target, source)
            await self._source.write_residence(source)
        self._require_free_target(target, source)
        if target is None or target.is_abandoned:
            await self._target.write_residence(Residence("arriving", source.move_id, self._source_address))
            await asyncio.sleep(SETTLE_SECONDS)
        return await self._resolve_interrupted_switch(source, target)

    async def _find_abandoned(self, target: Residence | None) -> str | None:
        """Return the id of an abandoned move from this source whose copy is in the target, or None."""
        if target is None or target.state != "arriving":
            return None
        is_known = await is_move_known(self._source.connection, self._tenant, target.move_id)
        return target.move_id if is_known else None

    async def _begin_revert(self, live: Residence | None, former: Residence | None) -> Residence:
        if live is None or former is None or live.move_id != former.move_id:
            raise MoveRefused(
                f"the tenant {self._tenant} has not moved between these deployments: check --data and --to"
            )
        if former.is_confirmed:
            raise MoveRefused(
                f"the move of {self._tenant} is confirmed and cannot be reverted: to move the tenant again,"
                " run `mnemon tenant move` where the tenant lives, with --to a deployment that has no events"
                " of the tenant"
            )
        if live.state == "here":
            live = msgspec.structs.replace(live, state="copying", is_returning=True)
            await self._source.write_residence(live)
        if not live.is_returning:
            raise MoveRefused(
                f"the move of {self._tenant} has not switched and cannot be reverted: run `mnemon tenant"
                " abandon`"
            )
        return await self._resolve_interrupted_switch(live, former)

    async def _resolve_interrupted_switch(self, source: Residence, target: Residence | None) -> Residence:
        """Complete an interrupted switch if the target serves the tenant, otherwise undo the switch."""
        if source.state in ("draining", "leaving"):
            is_switched = (
                target is not None and target.state == "here" and target.is_returning == self._is_returning
            )
            state: Literal["moved", "copying"] = "moved" if is_switched else "copying"
            former = None if is_switched else source.former
            source = msgspec.structs.replace(source, state=state, former=former)
            await self._source.write_residence(source)
            log.info("interrupted switch resolved", tenant=self._tenant, state=state)
        return source

    def _require_free_target(self, target: Residence | None, source: Residence) -> None:
        if source.state == "moved":
            is_reverted = target is not None and target.is_returning
        else:
            is_reverted = source.is_returning
        if is_reverted:
            raise MoveRefused(
                f"the move of {self._tenant} is being reverted: run `mnemon tenant revert` again"
            )
        if target is not None and target.move_id != source.move_id and target.state == "moved":
            raise MoveRefused(
                f"the tenant {self._tenant} has left the deployment at --to, which keeps its events from"
                " before, and cannot move there again: move the tenant to a deployment that has no events of"
                " the tenant"
            )
        if target is not None and target.move_id != source.move_id:
            raise MoveRefused(
                f"the deployment at --to took part in another move of the tenant {self._tenant} (state:"
                f" {target.state}): move the tenant to a deployment that has no events of the tenant"
            )
        # The address alone cannot tell: `confirm` and later runs may name the same servers in another way.
        if source.state == "moved" and (target is None or target.state != "here"):
            raise MoveRefused(
                f"the tenant {self._tenant} has moved to {source.peer}: name that deployment as --to"
            )
        if target is None and source.peer != self._target_address:
            raise MoveRefused(
                f"the tenant {self._tenant} is being moved to {source.peer}: name that deployment as --to"
            )

    async def _require_movable(self, source: Residence | None) -> None:
        tenant = self._tenant
        if source is not None and not (source.is_confirmed or source.is_returning):
            raise MoveRefused(
                f"the move of the tenant {tenant} from {source.peer} is not confirmed: to move it back there,"
                " run `mnemon tenant revert` there; to move the tenant on, first run `mnemon tenant confirm`"
                " there"
            )
        if not await read_last_position(self._source.connection, build_owner_filter(tenant)):
            raise MoveRefused(
                f"the tenant {tenant} has no events at {self._source_address}: check the id of the tenant"
            )


async def require_no_batches(source: TenantSite) -> None:
    """Check that no open batch has windows of the tenant: the source's log would get the answers.

    Raises:
        MoveRefused: an open batch has windows of the tenant.
    """
    if windows := await source.database.run_query(count_batched_windows(source.tenant)):
        raise MoveRefused(
            f"batches of a provider have {format_count(windows, 'window')} of {source.tenant}: set"
            " extraction.mode to online for the tenant, so that no further batches begin, and move the"
            " tenant when the open batches have ended (mnemon batches --state open)"
        )
