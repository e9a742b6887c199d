"""Settings as fields of a form: the control of each setting, and the parsing of submitted values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import ValidationError

from mnemon.json_text import parse_json_or_text
from mnemon_contracts.base import InvalidBody, describe_problem
from mnemon_contracts.settings.fields import SettingField
from mnemon_contracts.settings.language_models import Price

FieldKind = Literal["switch", "choice", "number", "line", "text", "prices"]

EMPTY_PRICE_LINES: Final = 2
"""Number of empty lines that the form has for further prices."""

_MULTILINE: Final = ("instructions",)
"""Last parts of the names of settings that are edited in a field of several lines."""


@dataclass(frozen=True)
class SettingControl:
    """The control of a setting in the form.

    Attributes:
        may_be_empty: whether an empty field means `null`.
        attributes: HTML attributes with the step and the bounds of a number.
    """

    name: str
    description: str
    kind: FieldKind
    options: Sequence[str] = ()
    may_be_empty: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_setting(cls, setting: SettingField) -> "SettingControl":
        """Choose the control of a setting by its JSON schema."""
        branches = setting.schema.get("anyOf", [setting.schema])
        schema = next(each for each in branches if each["type"] != "null")
        optional = len(branches) > 1
        match schema:
            case {"enum": options}:
                return cls(setting.name, setting.description, "choice", options, optional)
            case {"type": "boolean"}:
                return cls(setting.name, setting.description, "switch")
            case {"type": "array"}:
                return cls(setting.name, setting.description, "prices")
            case {"type": "integer" | "number" as type_}:
                bounds = {
                    "min": schema.get("minimum", schema.get("exclusiveMinimum")),
                    "max": schema.get("maximum"),
                }
                attributes = {"step": 1 if type_ == "integer" else "any"} | bounds
                return cls(setting.name, setting.description, "number", (), optional, attributes)
        long = setting.name.endswith(_MULTILINE)
        return cls(setting.name, setting.description, "text" if long else "line", (), optional)

    @property
    def label(self) -> str:
        """Name of the setting without its group."""
        return self.name.partition(".")[2] or self.name

    def format_value(self, value: Any) -> str:
        """Return a value as text for the field."""
        if value is None:
            return ""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return value if isinstance(value, str) else json.dumps(value)

    def read_value(self, form: Mapping[str, str]) -> Any:
        """Return the submitted value of the setting.

        An invalid value stays a text, so that a later validation names the reason.
        """
        if self.kind == "prices":
            return _read_prices(self.name, form)
        typed = form.get(self.name, "")
        if not typed and self.may_be_empty:
            return None
        if self.kind in ("line", "text", "choice"):
            return typed
        return parse_json_or_text(typed)


def _read_prices(name: str, form: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the prices of the lines that name a model."""
    found = []
    line = 0
    while f"{name}.{line}.model" in form:
        typed = {part: form.get(f"{name}.{line}.{part}", "") for part in Price.model_fields}
        if typed["model"]:
            amounts = {part: parse_json_or_text(value) for part, value in typed.items() if value}
            found.append(amounts | {"model": typed["model"]})
        line += 1
    return found


def list_errors(error: InvalidBody) -> dict[str, str]:
    """Return the first error of each field. An `InvalidBody` has one error, and its cause may have all."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return {error.field: error.problem}
    found: dict[str, str] = {}
    for each in cause.errors(include_url=False, include_context=False):
        found.setdefault(".".join(map(str, each["loc"])), describe_problem(each))
    return found
