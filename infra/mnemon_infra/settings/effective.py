"""The settings in force by name, and where each comes from, for whoever shows them."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from nats.aio.client import Client

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import DEFAULTS, flat, in_force
from mnemon_infra.settings.store import documents

Source = Literal["default", "set", "tenant"]
"""Nobody has set it, it is set for everybody, or the tenant has it of its own."""


class InForce(NamedTuple):
    """What holds for everybody, or for a tenant.

    Attributes:
        values: of every setting.
        below: what holds where this tenant, or everybody, has set nothing: what one goes back to.
        sources: of every setting.
        problem: why what the tenant has of its own is left out; None where it is not.
    """

    values: Mapping[str, Any]
    below: Mapping[str, Any]
    sources: Mapping[str, Source]
    problem: str | None = None


async def shown(connection: Client, tenant: str | None = None) -> InForce:
    """The settings in force, by their full names.

    Raises:
        SettingsNotProvisioned: the bucket is absent.
        nats.errors.Error: the server does not answer.
        mnemon_contracts.subjects.InvalidId: there can be no such tenant.
    """
    default, own = await documents(connection, tenant)
    everybody = flat(in_force(default).model_dump(mode="json"))
    sources: dict[str, Source] = dict.fromkeys(DEFAULTS, "default")
    sources |= {name: "set" for name in flat(default) if name in DEFAULTS}
    if tenant is None:
        return InForce(everybody, DEFAULTS, sources)
    try:
        values = flat(in_force(default, own).model_dump(mode="json"))
    except InvalidBody as error:
        return InForce(everybody, everybody, sources, str(error))
    sources |= {name: "tenant" for name in flat(own) if name in DEFAULTS}
    return InForce(values, everybody, sources)
