"""Residence of a tenant: its memory is in this deployment, moves, or has moved to another deployment.

The bucket of settings keeps the residence, so that every process follows it without a restart. A tenant
without an entry lives in this deployment.
"""

from contextlib import suppress
from typing import Final, Literal, NamedTuple

import msgspec
import structlog
from nats.aio.client import Client
from nats.js.errors import KeyNotFoundError

from mnemon_contracts.streams import SETTINGS
from mnemon_contracts.subjects import decode_token, encode_token
from mnemon_infra.settings.bucket import open_bucket, put_entry, read_entries

log = structlog.get_logger("settings")

_KEY: Final = "residence."

ResidenceState = Literal["copying", "draining", "leaving", "moved", "arriving", "here"]
"""State of a tenant in one deployment, which the list calls "here".

- `copying`: events are copied to another deployment; everything works here.
- `draining`: as `copying`, except that no request to a language model begins here.
- `leaving`: the write pause; requests are refused here.
- `moved`: requests are answered with the error `moved`, except `erase` once the move is confirmed.
- `arriving`: events are copied here, or were before an abandonment; only the request `erase` is answered.
- `here`: the tenant lives here after a move.
"""

_SUSPENDED: Final = frozenset({"leaving", "moved", "arriving"})
_ENDED: Final = frozenset({"moved", "here"})


class Residence(msgspec.Struct, frozen=True, omit_defaults=True):
    """Residence of a tenant in one deployment.

    Attributes:
        state: the state, which determines what this deployment does for the tenant.
        peer: address of the other deployment's NATS servers, without a login.
        first: position of the first event that moved to this deployment; 0 if no event has moved here.
        last: position of the last event that moved to this deployment.
        copied: in the deployment that a tenant has left, the position up to which its events were copied.
        withheld: in the deployment that a tenant has left, positions of late events that remove content and
            were not copied.
        pause: seconds of the write pause.
        keys: in the deployment to which the tenant moves, ids of the API keys that the move copied there.
        former: in the deployment that the tenant leaves, the residence before the move; None if the tenant
            had no entry.
        is_confirmed: whether the move can no longer be reverted.
        is_returning: whether the move is being reverted, or was reverted.
        is_abandoned: whether the move to this deployment was abandoned; the tenant lives in the other one.
    """

    state: ResidenceState
    move_id: str
    peer: str
    first: int = 0
    last: int = 0
    copied: int = 0
    withheld: tuple[int, ...] = ()
    pause: float = 0.0
    keys: tuple[str, ...] = ()
    former: "Residence | None" = None
    is_confirmed: bool = False
    is_returning: bool = False
    is_abandoned: bool = False

    @property
    def is_suspended(self) -> bool:
        """True while this deployment may decide, extract and summarise nothing for the tenant."""
        return self.state in _SUSPENDED

    @property
    def is_ended(self) -> bool:
        """True once the move is confirmed or reverted: the two deployments are not compared again."""
        return self.state in _ENDED and (self.is_confirmed or self.is_returning)

    @property
    def stops_models(self) -> bool:
        """True while this deployment may begin no request to a language model for the tenant."""
        return self.is_suspended or self.state == "draining"


class ResidenceInvalid(ValueError):
    """The newest entry of a tenant's residence cannot be parsed; the message names the next step."""

    def __init__(self, tenant: str, key: str) -> None:
        super().__init__(
            f"the residence of the tenant {tenant} is invalid or of a newer version of mnemon, so processes"
            " follow the former residence. Run one version of mnemon everywhere; if the entry is damaged,"
            f" restore a former revision: nats kv history {SETTINGS} {key}; nats kv revert {SETTINGS} {key}"
            " REVISION"
        )


class StoredResidence(NamedTuple):
    """A residence, with the revision of the newest entry.

    Without an entry, `residence` is None. If there never was an entry, `revision` is 0.
    """

    residence: Residence | None
    revision: int


def build_residence_key(tenant: str) -> str:
    """Return the key of a tenant's residence.

    Raises:
        mnemon_contracts.subjects.InvalidId: the id cannot be a tenant's.
    """
    return _KEY + encode_token(tenant)


def parse_residence_tenant(key: str) -> str | None:
    """Return the tenant whose residence has this key; None for any other key.

    Raises:
        mnemon_contracts.subjects.InvalidSubject: the key has no valid tenant id.
    """
    return decode_token(key.removeprefix(_KEY)) if key.startswith(_KEY) else None


def parse_residence(body: bytes | None) -> Residence | None:
    """Parse an entry; None for a removed entry.

    Raises:
        ValueError: the entry is not a residence, or has a state of a newer version.
    """
    return msgspec.json.decode(body, type=Residence) if body else None


def apply_residence(residences: dict[str, Residence], key: str, body: bytes | None) -> bool:
    """Apply an entry of the bucket to `residences`, by tenant; return False for a key of another kind.

    Raises:
        ValueError: the entry is not a residence, has a state of a newer version, or has a key that no tenant
            can have; nothing is changed.
    """
    if (tenant := parse_residence_tenant(key)) is None:
        return False
    residence = parse_residence(body)
    if residence is None:
        residences.pop(tenant, None)
    else:
        residences[tenant] = residence
    return True


def log_invalid_residence(key: str, error: ValueError) -> None:
    """Log that an entry is ignored because it is not valid."""
    log.error("residence ignored as invalid, former residence stays", key=key, error=str(error))


async def read_residence(connection: Client, tenant: str) -> StoredResidence:
    """Return the residence of a tenant.

    Raises:
        SettingsNotProvisioned: the bucket is absent.
        nats.errors.Error: the server does not answer.
        ResidenceInvalid: the entry is not a residence, or has a state of a newer version.
        mnemon_contracts.subjects.InvalidId: the id cannot be a tenant's.
    """
    bucket = await open_bucket(connection)
    key = build_residence_key(tenant)
    try:
        entry = await bucket.get(key, validate_keys=False)
    except KeyNotFoundError as error:
        return StoredResidence(None, (error.entry and error.entry.revision) or 0)
    try:
        return StoredResidence(parse_residence(entry.value), entry.revision or 0)
    except ValueError as error:
        raise ResidenceInvalid(tenant, key) from error


async def is_move_known(connection: Client, tenant: str, move_id: str) -> bool:
    """Return whether the history of the tenant's residence has a move with this id."""
    for entry in await read_entries(await open_bucket(connection), build_residence_key(tenant)):
        with suppress(ValueError):  # an invalid entry is no move that this version can continue
            residence = parse_residence(entry.value)
            if residence is not None and residence.move_id == move_id:
                return True
    return False


async def write_residence(connection: Client, tenant: str, residence: Residence | None, last: int) -> int:
    """Write the residence of a tenant, or remove it; return the revision of the entry.

    `last` is the revision of the newest entry, even of a removal; 0 if there never was an entry.

    Raises:
        nats.js.errors.KeyWrongLastSequenceError: another process has changed the entry.
        nats.errors.Error: it is unknown whether the entry is written.
        mnemon_contracts.subjects.InvalidId: the id cannot be a tenant's.
    """
    body = b"" if residence is None else msgspec.json.encode(residence)
    return await put_entry(connection, build_residence_key(tenant), body, last)


async def list_residences(connection: Client) -> dict[str, Residence]:
    """Return the residences of all tenants that have one, because they move or have moved.

    If the newest entry of a tenant is not valid, the newest valid entry applies.
    """
    bucket = await open_bucket(connection)
    residences: dict[str, Residence] = {}
    invalid: dict[str, ValueError] = {}
    for entry in await read_entries(bucket, f"{_KEY}>"):  # a later entry replaces an earlier one
        invalid.pop(entry.key, None)
        try:
            apply_residence(residences, entry.key, entry.value)
        except ValueError as error:
            invalid[entry.key] = error
    for key, problem in invalid.items():
        log_invalid_residence(key, problem)
    return residences
