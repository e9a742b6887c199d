"""Base of every group of settings."""

from typing import TypeVar

from pydantic import ConfigDict, ValidationInfo

from mnemon_contracts.base import Contract

Number = TypeVar("Number", int, float)


class Settings(Contract):
    """A group of settings. A value of another type is refused: `true` is no number, and `"5"` neither."""

    model_config = ConfigDict(strict=True, validate_default=True)


def at_least(value: Number, other: str, info: ValidationInfo) -> Number:
    """A value that is not below another setting's; ValueError otherwise."""
    least = info.data.get(other)
    if least is not None and value < least:
        raise ValueError(f"{value} is less than {other}, which is {least}")
    return value


def at_most(value: Number, other: str, info: ValidationInfo) -> Number:
    """A value that is not above another setting's; ValueError otherwise."""
    most = info.data.get(other)
    if most is not None and value > most:
        raise ValueError(f"{value} is more than {other}, which is {most}")
    return value
