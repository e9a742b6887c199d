"""Abandonment of a move or a revert that has not switched: the tenant stays where it is."""

from dataclasses import dataclass
from typing import NoReturn

import msgspec
import structlog

from mnemon.operations.tenant_move.api_keys import revoke_copied_keys
from mnemon.operations.tenant_move.deployment import (
    MoveRefused,
    TenantSite,
    describe_arrival,
    hold_move_leases,
)
from mnemon_contracts.subjects import build_owner_filter
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.settings.residence import Residence, is_move_known

log = structlog.get_logger("move")


@dataclass(frozen=True, slots=True)
class AbandonResult:
    """Result of an abandonment.

    The target is the deployment to which the move or the revert would have taken the tenant.

    Attributes:
        is_revert: whether a revert was abandoned, not a move.
        keys: number of copied API keys that were revoked in the target; 0 if the target is lost.
        has_copy: whether the target keeps events of the tenant; False if the target is lost.
    """

    is_revert: bool
    keys: int = 0
    has_copy: bool = False


async def abandon_move(site: TenantSite, other: TenantSite | None, address: str = "") -> AbandonResult:
    """Abandon a move, or a revert, that has not switched.

    If a killed command has let the target serve the tenant, the target first stops. Then the deployment where
    the move or the revert began serves the tenant again, and the copied API keys are revoked. The copy in the
    target stays, marked by the target's residence: no consumer derives anything from the copy, and a later
    move continues with it.

    Args:
        site: the tenant in the deployment where the move began; for a revert, in either deployment.
        other: the tenant in the other deployment; None if that is lost.
        address: the address of `other`.

    Raises:
        MoveRefused: no move has begun, the tenant has moved, another command moves the tenant now, or `other`
            is not the target. Also if a command was killed in the switch, and the target has new events.
        LeaseLost: the lease was lost, so that another command may move the tenant now.
        SettingsNotProvisioned: a deployment has no bucket of settings.
        ResidenceInvalid: a stored residence is invalid, or of a newer version.
        ApiKeysNotProvisioned: the target no longer has a bucket for the API keys.
        nats.errors.Error, DatabaseUnavailable: a server does not answer. The call can be repeated.
    """
    async with hold_move_leases(site, other):
        residence = await site.load_residence()
        other_residence = await other.load_residence() if other is not None else None
        if residence is not None and other is not None and _has_unfinished_revert(residence, other_residence):
            return await _reinstate_source(other, site, is_returning=True)
        if residence is None or not _has_begun_move(residence):
            if other_residence is None or not await _has_abandoned_move(site, other_residence):
                _refuse_abandonment(site.tenant, residence)
        elif other is not None and not _leads_to(address, residence, other_residence):
            raise MoveRefused(
                f"the tenant {site.tenant} is being moved to {residence.peer}: name that deployment as --to,"
                " or give --target-lost if that deployment is lost"
            )
        return await _reinstate_source(
            site,
            other,
            is_returning=residence is not None and _has_begun_move(residence) and residence.is_returning,
        )


def _leads_to(address: str, residence: Residence, other_residence: Residence | None) -> bool:
    """Return whether a move leads to the deployment at an address.

    Args:
        address: the address of the other deployment.
        residence: the residence in the deployment where the move has begun.
        other_residence: the residence in the other deployment, if it has one.
    """
    if other_residence is not None:
        return other_residence.move_id == residence.move_id
    # The target gets its residence while the source copies.
    return residence.state == "copying" and residence.peer == address


def _has_begun_move(residence: Residence) -> bool:
    """Return whether a move or a revert began in the deployment of this residence, and has not switched."""
    return residence.state in ("copying", "draining", "leaving")


def _has_unfinished_revert(residence: Residence, other_residence: Residence | None) -> bool:
    """Return whether a revert has begun in the other deployment and has not ended.

    A revert has not ended either if a command was killed while it abandoned the revert.
    """
    if other_residence is None or other_residence.move_id != residence.move_id:
        return False
    if other_residence.is_returning and _has_begun_move(other_residence):
        return True
    return (
        (residence.state, other_residence.state) == ("moved", "here")
        and bool(residence.keys)
        and not residence.is_confirmed
    )


async def _has_abandoned_move(source: TenantSite, target: Residence) -> bool:
    """Return whether a move of the source was abandoned, perhaps by a command that was killed.

    `target` is the residence in the other deployment.
    """
    if source.residence is not None and source.residence.state != "here":
        return False
    return target.state in ("arriving", "here") and (
        await is_move_known(source.connection, source.tenant, target.move_id)
        and (source.residence is None or source.residence.move_id != target.move_id)
    )


def _refuse_abandonment(tenant: str, residence: Residence | None) -> NoReturn:
    if residence is None or residence.state == "here":
        raise MoveRefused(
            f"no move of the tenant {tenant} has begun in the deployment of --data or MNEMON_NATS_URL: check"
            " --data and --to"
        )
    if residence.state == "arriving":
        raise MoveRefused(describe_arrival(tenant, residence))
    if residence.is_confirmed:
        raise MoveRefused(
            f"the move of {tenant} to {residence.peer} is confirmed and cannot be abandoned: to move the"
            " tenant again, run `mnemon tenant move` there, with --to a deployment that has no events of the"
            " tenant"
        )
    raise MoveRefused(
        f"the tenant {tenant} has moved to {residence.peer}: `mnemon tenant revert` moves the tenant back,"
        " with all events published there since the move"
    )


async def _reinstate_source(
    source: TenantSite, target: TenantSite | None, *, is_returning: bool
) -> AbandonResult:
    """Stop the target, let the source serve the tenant again, and revoke the copied API keys.

    Raises:
        MoveRefused: the target already serves the tenant, and has new events of the tenant.
    """
    tenant, residence = source.tenant, source.residence
    if target is not None and target.residence is not None and not await _stop_target(target, is_returning):
        if residence is None or not _has_begun_move(residence):
            raise MoveRefused(
                "the move was abandoned with --target-lost, and the deployment of --to has new events of the"
                f" tenant {tenant}: let bots connect to this deployment (--data or MNEMON_NATS_URL), and"
                " revoke the tenant's API keys in the deployment of --to. Run `mnemon export jsonl --tenant"
                f" {tenant} -o FILE` there, and `mnemon import jsonl FILE --refused REFUSED` here. Then"
                " repeat here the removals and erasures made there, and check the records in REFUSED"
            )
        kind = "revert" if is_returning else "move"
        raise MoveRefused(
            f"the {kind} of the tenant {tenant} cannot be abandoned: the deployment to which it leads"
            f" already serves the tenant, and has new events. Complete the {kind}: run the same"
            f" `mnemon tenant {kind}` again"
        )
    if residence is not None and _has_begun_move(residence):
        await source.write_residence(
            msgspec.structs.replace(residence, state="here", is_returning=False)
            if is_returning
            else residence.former
        )
    keys, has_copy = 0, False
    if target is not None and target.residence is not None:
        keys = await revoke_copied_keys(target)
        marked = msgspec.structs.replace(target.residence, keys=(), is_abandoned=not is_returning)
        if marked != target.residence:
            await target.write_residence(marked)
        has_copy = bool(await read_last_position(target.connection, build_owner_filter(tenant)))
    log.info("tenant move abandoned", tenant=tenant, kind="revert" if is_returning else "move")
    return AbandonResult(is_returning, keys, has_copy)


async def _stop_target(target: TenantSite, is_returning: bool) -> bool:
    """Stop the target from serving the tenant, if a command was killed in the middle of the switch.

    Returns:
        False, and the target still serves the tenant, if it has new events of the tenant, which an
        abandonment would lose; otherwise True.
    """
    residence = target.residence
    assert residence is not None
    if residence.state != "here" or residence.is_returning != is_returning:
        return True
    if await read_last_position(target.connection, build_owner_filter(target.tenant)) > residence.last:
        return False
    closed = (
        msgspec.structs.replace(residence, state="moved", is_returning=False)
        if is_returning
        else msgspec.structs.replace(residence, state="arriving", first=0, last=0, is_abandoned=True)
    )
    await target.write_residence(closed)
    return True
