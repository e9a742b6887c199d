"""Errors and warnings for requests of a tenant that moves, or has moved, between deployments. No I/O."""

from mnemon_contracts.verbs.ask import AskError
from mnemon_infra.settings.residence import Residence


def find_residence_error(residence: Residence, verb: str) -> AskError | None:
    """Return the error for a request of a tenant; None if this deployment answers it.

    `erase` is also answered for a copy, so that no text of an erased user stays in it; see `holds_copy`.
    """
    if verb == "erase" and holds_copy(residence):
        return None
    if residence.is_abandoned:
        return _build_moved_error(residence, "the tenant has not moved to this deployment")
    match residence.state:
        case "moved":
            return _build_moved_error(residence, "the tenant has moved")
        case "leaving":
            message = "the tenant moves to another deployment: repeat the request in a few seconds"
            return AskError(code="unavailable", message=message, retryable=True)
        case "arriving":
            message = "the tenant moves to this deployment: repeat the request when the move has ended"
            return AskError(code="unavailable", message=message, retryable=True)
    return None


def _build_moved_error(residence: Residence, reason: str) -> AskError:
    return AskError(
        code="moved",
        message=f"{reason}: connect to {residence.peer}",
        retryable=False,
        moved_to=residence.peer,
    )


def holds_copy(residence: Residence) -> bool:
    """Return whether a deployment has only a copy of a tenant, which lives in the other deployment.

    There is only a copy while the tenant moves to this deployment, after an abandoned move to it, and after a
    move from it that can no longer be reverted.
    """
    return residence.state == "arriving" or (residence.state == "moved" and residence.is_confirmed)


def describe_copy(residence: Residence) -> str:
    """Return the warning for an erasure or a verification that covers only the copy in this deployment."""
    return (
        "only the copy in this deployment is concerned: repeat the request at "
        f"{residence.peer}, which has the memory"
    )
