"""Check of the tenant and the user that options name."""

from mnemon.cli.terminal.exit_code import ExitCode, refuse


def check_owner(tenant: str | None, user: str | None) -> None:
    """End the command if the tenant or the user cannot be an id."""
    from mnemon_contracts.subjects import InvalidId
    from mnemon_producers.events import check_id

    try:
        for field, given in ("tenant", tenant), ("user", user):
            if given is not None:
                check_id(field, given)
    except InvalidId as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
