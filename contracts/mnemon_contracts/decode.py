"""From a subject and a body to the latest version of an event: the one place where old versions are read."""

import json

from mnemon_contracts.base import Event
from mnemon_contracts.registry import EVENTS, EventContract
from mnemon_contracts.subjects import Address


class UnknownEvent(ValueError):
    """The subject names an event, or a version of one, that is not in the registry."""


def contract_of(address: Address) -> EventContract:
    """The contract of the event that a subject names.

    Raises:
        UnknownEvent: there is no such event, or no such version of it.
    """
    event = EVENTS.get(address.name)
    if event is None or event.space != address.space:
        known = ", ".join(name for name, event in EVENTS.items() if event.space == address.space)
        raise UnknownEvent(f"event {address.name!r} is not known in {address.space}; known are {known}")
    if address.version > len(event.versions):
        raise UnknownEvent(
            f"version v{address.version} of {address.name} is not known; the latest is "
            f"v{len(event.versions)}: upgrade mnemon"
        )
    return event


def decode(address: Address, body: bytes) -> Event:
    """Read an event, whatever its version, as the latest one.

    Raises:
        UnknownEvent: no such event or version.
        InvalidBody: the body does not satisfy the contract of the version that it came in.
    """
    return upcast(contract_of(address), address.version, body)


def upcast(event: EventContract, version: int, body: bytes) -> Event:
    """Read a body of one version and carry it up to the latest.

    Raises:
        InvalidBody: the body does not satisfy the contract of its version.
    """
    if not body and not any(
        field.is_required() for field in event.versions[version - 1].model_fields.values()
    ):
        body = b"{}"
    original = event.versions[version - 1].read(body)
    if version == len(event.versions):
        return original
    plain = json.loads(body)
    for step in event.upcasters[version - 1 :]:
        plain = step(plain)
    # Compact, so that a body near the limit is not pushed over it by white space.
    return event.latest.read(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())
