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


class Trouble(NamedTuple):
    """Reason why a page cannot be shown. `status` is the HTTP status."""

    status: int
    title: str
    said: str
    next_step: str


def trouble(error: Exception) -> Trouble | None:
    """Return the text for an error; None if the error is a bug."""
    match error:
        case BrokerUnreachable():
            return Trouble(503, "The broker does not answer", str(error), "See whether `mnemon up` runs.")
        case DatabaseUnavailable() | DatabaseNotConfigured():
            return Trouble(
                503,
                "The database does not answer",
                str(error),
                "Pages come back with it by themselves; `mnemon status` says what it lacks.",
            )
        case SettingsContended():
            return Trouble(409, "Somebody else was faster", str(error), "Go back, and try again.")
        case SettingsNotProvisioned() | StreamsMissing():
            return Trouble(503, "The streams are not there", str(error), "Run `mnemon provision`.")
        case AskFailed(code="unavailable" | "timeout"):
            return Trouble(
                503,
                "The memory does not answer",
                error.message,
                "Overview shows whether `retrieve` runs; `mnemon up` and `mnemon run retrieve` start it.",
            )
        case AskFailed(code="not_found"):
            return Trouble(404, "It is not there", error.message, "It may have been removed meanwhile.")
        case AskFailed():
            return Trouble(409, "The memory refuses", error.message, "Go back, and mend what it names.")
        case nats.js.errors.APIError():
            return Trouble(503, "The broker refuses", str(error.description), "`mnemon status` says more.")
        case nats.errors.Error():
            said = str(error) or "There was no answer in time."
            return Trouble(503, "The broker does not answer", said, "Try again in a moment.")
        case TimeoutError():
            said = "The broker or the database hangs."
            return Trouble(503, "There is no answer in time", said, "`mnemon status` says which it is.")
    return None
