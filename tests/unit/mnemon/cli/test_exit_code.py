"""What a command refuses in words is known by the names of its errors."""

from pkgutil import resolve_name

import pytest

from mnemon.cli.terminal.exit_code import ENDINGS


@pytest.mark.parametrize("name", ENDINGS)
def test_every_refusal_names_an_existing_error(name: str) -> None:
    error = resolve_name(name)
    assert issubclass(error, Exception)
    assert f"{error.__module__}.{error.__qualname__}" == name
