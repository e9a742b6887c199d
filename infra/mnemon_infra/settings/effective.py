"""Settings in force, by name and with their sources, for display."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from nats.aio.client import Client

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import DEFAULTS, flatten_document, resolve_settings
from mnemon_infra.settings.store import read_documents

Source = Literal["default", "set", "tenant"]
"""Source of a value: the built-in default, the general settings, or the tenant's own settings."""


class EffectiveSettings(NamedTuple):
    """Settings in force in general, or for one tenant.

    Attributes:
        values: the settings in force, by full name.
        below: values without the tenant's own settings; without a tenant, the built-in defaults.
        sources: the source of each value.
        problem: the reason why the tenant's own settings are ignored; None if they are not ignored.
    """

    values: Mapping[str, Any]
    below: Mapping[str, Any]
    sources: Mapping[str, Source]
    problem: str | None = None


async def read_effective_settings(connection: Client, tenant: str | None = None) -> EffectiveSettings:
    """Return the settings in force, by full name: a tenant's, or the general ones if `tenant` is None."""
    default, own = await read_documents(connection, tenant)
    everybody = flatten_document(resolve_settings(default).model_dump(mode="json"))
    sources: dict[str, Source] = dict.fromkeys(DEFAULTS, "default")
    sources |= {name: "set" for name in flatten_document(default) if name in DEFAULTS}
    if tenant is None:
        return EffectiveSettings(everybody, DEFAULTS, sources)
    try:
        values = flatten_document(resolve_settings(default, own).model_dump(mode="json"))
    except InvalidBody as error:
        return EffectiveSettings(everybody, everybody, sources, str(error))
    sources |= {name: "tenant" for name in flatten_document(own) if name in DEFAULTS}
    return EffectiveSettings(values, everybody, sources)
