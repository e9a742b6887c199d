"""Base of every group of settings."""

from typing import TypeVar

from pydantic import ConfigDict, ValidationInfo

from mnemon_contracts.base import Contract

Number = TypeVar("Number", int, float)


class Settings(Contract):
    """A group of settings. Values are not converted: a number must not be written as `true` or `"5"`."""

    model_config = ConfigDict(strict=True, validate_default=True)


def check_minimum(value: Number, other: str, info: ValidationInfo) -> Number:
    """Return the value; raise ValueError if it is below the value of the setting `other`.

    `other` is a field above this one in the same group. If it is None or invalid, there is no limit.
    """
    least = info.data.get(other)
    if least is not None and value < least:
        raise ValueError(
            f"{value} is less than {other}, which is {least}; raise this value, or lower {other}"
        )
    return value


def check_maximum(value: Number, other: str, info: ValidationInfo) -> Number:
    """Return the value; raise ValueError if it is above the value of the setting `other`.

    `other` is as for `check_minimum`.
    """
    most = info.data.get(other)
    if most is not None and value > most:
        raise ValueError(f"{value} is more than {other}, which is {most}; lower this value, or raise {other}")
    return value
