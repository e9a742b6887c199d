"""The fields of the settings: name, schema, default and description of each."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mnemon_contracts.settings.base import Settings
from mnemon_contracts.settings.document import DEFAULTS
from mnemon_contracts.settings.groups import SettingsV1


class SettingField(NamedTuple):
    """A setting; `schema` is its JSON Schema."""

    name: str
    description: str
    default: Any
    schema: dict[str, Any]


class Group(NamedTuple):
    """A group of settings. Settings without a group are in a group with an empty name."""

    name: str
    description: str
    fields: tuple[SettingField, ...]


def list_groups() -> list[Group]:
    """Return all settings by group: first those without a group, then the groups as they are defined."""
    alone = Group("", "", tuple(_list_fields(SettingsV1, "", deep=False)))
    return [alone] + [
        Group(name, field.description or "", tuple(_list_fields(type(field.default), f"{name}.")))
        for name, field in SettingsV1.model_fields.items()
        if isinstance(field.default, Settings)
    ]


def _list_fields(group: type[Settings], prefix: str, *, deep: bool = True) -> Iterator[SettingField]:
    schema = group.model_json_schema()
    for name, field in group.model_fields.items():
        if not isinstance(field.default, Settings):
            full = prefix + name
            yield SettingField(full, field.description or "", DEFAULTS[full], schema["properties"][name])
        elif deep:
            yield from _list_fields(type(field.default), f"{prefix}{name}.")
