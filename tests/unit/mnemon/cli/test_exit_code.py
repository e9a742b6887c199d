"""Commands know the errors that they report in words by the names of the classes."""

from pkgutil import resolve_name

import pytest

from mnemon.cli.terminal.exit_code import ENDINGS


@pytest.mark.parametrize("name", ENDINGS)
def test_every_refusal_names_an_existing_error(name: str) -> None:
    error = resolve_name(name)
    assert issubclass(error, Exception)
    assert f"{error.__module__}.{error.__qualname__}" == name
