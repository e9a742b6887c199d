"""Groups of options that several commands share: a command takes each group as one argument, a dataclass."""

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with the fields of its dataclass parameters as options."""
    groups: dict[str, Callable[..., object]] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        options = [parameter]
        if is_dataclass(parameter.annotation) and isinstance(parameter.annotation, type):
            groups[parameter.name] = parameter.annotation
            options = list(signature(parameter.annotation).parameters.values())
        parameters += [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]

    @wraps(command)
    def run(**given: Any) -> None:
        values = {
            name: group(**{field: given.pop(field) for field in signature(group).parameters})
            for name, group in groups.items()
        }
        command(**given, **values)

    # Typer derives the options from the signature.
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run
