"""API keys of a tenant that moves: the same keys work in the deployment where the tenant lives."""

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec
from nats.js.errors import KeyWrongLastSequenceError

from mnemon.operations.tenant_move.deployment import MoveRefused, TenantSite
from mnemon_infra.settings.api_keys import ApiKey, ApiKeys, ApiKeysNotProvisioned, open_api_keys

KEYS_AT_ONCE: Final = 50
"""Maximum number of keys that are written at the same time."""


async def copy_api_keys(source: TenantSite, target: TenantSite) -> None:
    """Copy the tenant's keys to the target, and revoke there the keys that were revoked in the source.

    The keys that the operator created in the target stay. A key that came to the source from the target, and
    was revoked in the target since, stays revoked. The target's residence lists the copied keys before they
    are written, so that a later run can revoke them even if this one is killed.

    Raises:
        MoveRefused: the target has no bucket for the keys, or another key with the same id.
        nats.errors.Error: a server does not answer.
    """
    try:
        wanted = {each.id: each for each in await _list_keys(await open_api_keys(source.connection), source)}
    except ApiKeysNotProvisioned:
        wanted = {}
    residence = target.residence
    assert residence is not None
    assert source.residence is not None
    returning_ids = source.residence.keys if residence.state == "moved" else ()
    if not wanted and not residence.keys and not returning_ids:
        return
    try:
        keys = await open_api_keys(target.connection)
    except ApiKeysNotProvisioned as error:
        raise MoveRefused(
            f"the deployment to which the tenant {target.tenant} moves cannot store the tenant's API keys:"
            f" {error} in that deployment"
        ) from error
    present = {each.id: each for each in await _list_keys(keys, target)}
    absent = [key for key_id, key in wanted.items() if key_id not in present and key_id not in returning_ids]
    listed = tuple(sorted({*residence.keys, *(each.id for each in absent)}))
    if listed != residence.keys:
        await target.write_residence(msgspec.structs.replace(residence, keys=listed))
    for start in range(0, len(absent), KEYS_AT_ONCE):
        await asyncio.gather(*(_add_key(keys, each) for each in absent[start : start + KEYS_AT_ONCE]))
    await _revoke_keys(keys, ({*listed, *returning_ids} & present.keys()) - wanted.keys())


async def revoke_copied_keys(target: TenantSite) -> int:
    """Revoke the keys that a move has copied to the target; return the number of revoked keys.

    Raises:
        ApiKeysNotProvisioned: the target no longer has a bucket for the keys.
        nats.errors.Error: the server does not answer. The call can be repeated.
    """
    if target.residence is None or not target.residence.keys:
        return 0
    keys = await open_api_keys(target.connection)
    # The list may name a key of another tenant: a copy lists each id before it finds a key with the same id.
    present = {each.id for each in await _list_keys(keys, target)}
    return await _revoke_keys(keys, present.intersection(target.residence.keys))


async def _add_key(keys: ApiKeys, key: ApiKey) -> None:
    try:
        await keys.add(key)
    except KeyWrongLastSequenceError as error:
        raise MoveRefused(
            f"the deployment to which the tenant moves has another API key with the id {key.id}: revoke it"
            f" there with `mnemon auth key revoke {key.id}`"
        ) from error


async def _list_keys(keys: ApiKeys, site: TenantSite) -> list[ApiKey]:
    return [each for each in await keys.list_keys() if each.tenant == site.tenant]


async def _revoke_keys(keys: ApiKeys, ids: Iterable[str]) -> int:
    return sum(await asyncio.gather(*map(keys.revoke, ids)))
