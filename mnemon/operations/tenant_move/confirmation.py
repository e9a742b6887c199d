"""Confirmation of a move: the tenant can no longer be moved back."""

import msgspec

from mnemon.operations.tenant_move.deployment import MoveRefused, TenantSite, hold_move_leases


async def confirm_move(source: TenantSite, target: TenantSite, *, is_dry_run: bool = False) -> None:
    """Confirm a move in both deployments: it can no longer be reverted.

    The tenant has left `source` for `target`. With `is_dry_run`, only check whether the move can be
    confirmed.

    Raises:
        MoveRefused: the tenant has not moved between these deployments, or another command moves it.
        LeaseLost: the lease was lost, so that another command may move the tenant now.
        SettingsNotProvisioned: a deployment has no bucket of settings.
        ResidenceInvalid: a stored residence is invalid, or of a newer version.
        DatabaseUnavailable, nats.errors.Error: a server does not answer. The call can be repeated.
    """
    async with hold_move_leases(source, target):
        left, arrived = await source.load_residence(), await target.load_residence()
        if left is None or arrived is None or left.move_id != arrived.move_id:
            raise MoveRefused(
                f"the tenant {source.tenant} has not moved between these deployments: check --data and --to"
            )
        if (left.state, arrived.state) != ("moved", "here"):
            raise MoveRefused(
                f"the move of the tenant {source.tenant} between these deployments has not ended, or was "
                "reverted: if it has not ended, run the interrupted `mnemon tenant move` or `mnemon tenant "
                "revert` again; a reverted move needs no confirmation"
            )
        for site, residence in ((target, arrived), (source, left)):
            if not is_dry_run and not residence.is_confirmed:
                await site.write_residence(msgspec.structs.replace(residence, is_confirmed=True))
