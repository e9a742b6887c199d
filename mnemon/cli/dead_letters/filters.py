"""Options that select dead letters, shared by all commands of `mnemon dead`."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mnemon_infra.broker.dead_letters.listing import LetterFilter


def add_filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `wanted`; it takes what they amount to as an argument of that name."""
    options = signature(wanted).parameters
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        parameters += options.values() if parameter.name == wanted.__name__ else [parameter]

    @wraps(command)
    def with_filters(**given: Any) -> None:
        filters = {name: given.pop(name) for name in options}
        command(**given, wanted=wanted(**filters))

    # Typer derives the options from the signature.
    with_filters.__annotations__ = {each.name: each.annotation for each in parameters}
    with_filters.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return with_filters


def wanted(
    *,
    consumer: Annotated[
        str | None, typer.Option(help="Only letters of this consumer, such as `persist`.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="Only letters with this reason, such as `invalid_body`.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Only letters of this tenant.")] = None,
    user: Annotated[str | None, typer.Option(help="Only letters of users with this id.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Only letters since this time, in UTC.")] = None,
) -> "LetterFilter":
    """The letters that the options leave."""
    from mnemon_infra.broker.dead_letters.listing import LetterFilter

    return LetterFilter(consumer, reason, tenant, user, since and since.replace(tzinfo=UTC))
