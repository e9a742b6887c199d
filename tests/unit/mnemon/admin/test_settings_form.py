"""Settings as fields of a form: typed values are saved, or refused with the name of the field."""

from typing import Any

import pytest

from mnemon.admin.forms.settings import SettingControl, list_errors
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import DEFAULTS, resolve_settings, set_value
from mnemon_contracts.settings.fields import list_groups

CONTROLS = {
    field.name: SettingControl.from_setting(field) for group in list_groups() for field in group.fields
}
PRICE = {"model": "gpt-4o-mini", "input": 0.15, "output": 0.6, "batch": 0.5}


def test_every_setting_has_a_field_that_gives_back_what_it_shows() -> None:
    assert set(CONTROLS) == set(DEFAULTS)
    for name, control in CONTROLS.items():
        value = DEFAULTS[name]
        assert control.read_value({name: control.format_value(value)}) == value, name


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("limits.per_user", "700", 700),
        ("policy.refuse_secrets", "false", False),
        ("retrieval.threshold", "", None),
        ("time_stamps.zone", "5", "5"),
        ("compaction.instructions", "", None),
        ("limits.per_user", "many", "many"),
    ],
)
def test_typed_text_becomes_a_value(name: str, typed: str, value: Any) -> None:
    assert CONTROLS[name].read_value({name: typed}) == value


def test_prices_are_lines_of_their_own() -> None:
    lines: list[dict[str, Any]] = [PRICE, {}, {"model": "haiku", "input": "x"}]
    form = {
        f"spending.prices.{number}.{part}": str(line.get(part, ""))
        for number, line in enumerate(lines)
        for part in ("model", "input", "output", "cached", "batch")
    }
    assert CONTROLS["spending.prices"].read_value(form) == [PRICE, {"model": "haiku", "input": "x"}]


def test_every_wrong_field_is_named() -> None:
    document = set_value(set_value({}, "limits.per_user", "many"), "retrieval.limit", 0)
    with pytest.raises(InvalidBody) as refused:
        resolve_settings(document)
    assert list_errors(refused.value) == {
        "limits.per_user": "Input should be a valid integer",
        "retrieval.limit": "Input should be greater than or equal to 1",
    }
