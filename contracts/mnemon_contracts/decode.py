"""Decoding of events: a subject and a body become the latest version of the event.

Only this module reads old versions.
"""

import json

from mnemon_contracts.base import Event
from mnemon_contracts.registry import EVENTS, EventContract
from mnemon_contracts.subjects import Address


class UnknownEvent(ValueError):
    """The subject names an event, or a version of an event, that is not in the registry."""


def find_contract(address: Address) -> EventContract:
    """Return the contract of the event that a subject names.

    Raises:
        UnknownEvent: the registry lacks the event or its version.
    """
    event = EVENTS.get(address.name)
    if event is None or event.space != address.space:
        known = ", ".join(name for name, event in EVENTS.items() if event.space == address.space)
        raise UnknownEvent(f"event {address.name!r} is not known in {address.space}; use one of {known}")
    if address.version > len(event.versions):
        raise UnknownEvent(
            f"{address.name} v{address.version} is not known; the newest version that this mnemon knows is "
            f"v{len(event.versions)}. Upgrade mnemon, or publish v{len(event.versions)}"
        )
    return event


def decode_event(address: Address, body: bytes) -> Event:
    """Read an event of any version as the latest version.

    Raises:
        UnknownEvent: the registry lacks the event or its version.
        InvalidBody: the body does not satisfy the contract of its version, or the converted body that of the
            latest version.
    """
    return upcast_body(find_contract(address), address.version, body)


def upcast_body(event: EventContract, version: int, body: bytes) -> Event:
    """Read a body of one version and convert it to the latest version.

    An empty body counts as `{}` if its version has no required field.

    Raises:
        InvalidBody: the body does not satisfy the contract of its version, or the converted body that of the
            latest version.
    """
    if not body and not any(
        field.is_required() for field in event.versions[version - 1].model_fields.values()
    ):
        body = b"{}"
    original = event.versions[version - 1].parse(body)
    if version == len(event.versions):
        return original
    plain = json.loads(body)
    for step in event.upcasters[version - 1 :]:
        plain = step(plain)
    # Compact, because white space could push a body over the size limit.
    return event.latest.parse(json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode())
