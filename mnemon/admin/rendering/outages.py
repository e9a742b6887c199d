"""Error texts of the page, with the next step, for errors of the servers."""

from typing import NamedTuple

import nats.errors
import nats.js.errors

from mnemon_infra.broker.connection import BrokerUnreachable
from mnemon_infra.broker.provisioning.presence import StreamsMissing
from mnemon_infra.database.engine import DatabaseNotConfigured, DatabaseUnavailable
from mnemon_infra.settings.bucket import SettingsNotProvisioned
from mnemon_infra.settings.store import SettingsContended
from mnemon_producers.errors import AskFailed


class PageError(NamedTuple):
    """Reason why a request of the page failed. `status` is the HTTP status."""

    status: int
    title: str
    message: str
    next_step: str


def describe_error(error: Exception) -> PageError | None:
    """Return the reason to show for an error of a server or a request; None for any other error."""
    match error:
        case BrokerUnreachable():
            return PageError(
                503,
                "The broker does not answer",
                str(error),
                "Reload the page when the NATS server answers.",
            )
        case DatabaseUnavailable() | DatabaseNotConfigured():
            return PageError(
                503,
                "The database cannot be used",
                str(error),
                "Reload the page when the cause is removed; `mnemon status` shows the cause.",
            )
        case SettingsContended():
            return PageError(
                409, "The settings were changed at the same time", str(error), "Go back to the form."
            )
        case SettingsNotProvisioned():
            return PageError(
                503,
                "The bucket of settings does not exist",
                str(error),
                "Reload the page when the bucket exists.",
            )
        case StreamsMissing():
            return PageError(
                503, "The streams do not exist", str(error), "Reload the page when the streams exist."
            )
        case AskFailed(code="unavailable" | "timeout"):
            return PageError(
                503,
                "The request cannot be answered now",
                error.message,
                "Try again in a few seconds. If it repeats, check in Overview that `retrieve` runs; "
                "`mnemon up` or `mnemon run retrieve` starts it.",
            )
        case AskFailed(code="not_found"):
            return PageError(
                404,
                "Not found",
                error.message,
                "Go back and reload the page: the item may have been removed.",
            )
        case AskFailed(code="bad_request" | "refused"):
            return PageError(409, "The request was refused", error.message, "Go back and correct the form.")
        case AskFailed(code="moved"):
            return PageError(
                409,
                "The tenant lives in another deployment",
                error.message,
                "Open the admin page of that deployment.",
            )
        case AskFailed():
            return PageError(
                409, "The request failed", error.message, "Read the log messages of `retrieve` for details."
            )
        case nats.js.errors.APIError():
            return PageError(
                503,
                "The broker refused the request",
                str(error.description),
                "Run `mnemon status` for details.",
            )
        case nats.errors.Error():
            said = str(error) or "The broker did not answer in time."
            return PageError(503, "The broker does not answer", said, "Try again in a moment.")
        case TimeoutError():
            said = "The broker or the database does not answer."
            return PageError(
                503, "A server did not answer in time", said, "Run `mnemon status`, which names the server."
            )
    return None
