"""Forms for facts: choices, submitted values, and errors by field."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from mnemon.admin.forms.fields import parse_whole_number
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import Kind, Tier
from mnemon_producers.errors import AskFailed

TIERS: Final[Mapping[Tier, str]] = {
    "profile": "always shown to the model",
    "working": "shown until it expires",
    "archive": "shown when a query finds it",
}

_AS_CLASSIFIED: Final = ("", "classified automatically")
KINDS: Final = [(kind, kind.replace("_", " ")) for kind in get_args(Kind)]
TIER_CHOICES: Final = [(tier, tier) for tier in TIERS]
TIER_HINT: Final = "; ".join(f"{tier}: {what}" for tier, what in TIERS.items())
FREE_KINDS: Final = [_AS_CLASSIFIED, *KINDS]
FREE_TIERS: Final = [_AS_CLASSIFIED, *TIER_CHOICES]

FIELDS: Final = ("text", "kind", "tier", "importance", "expires_at")

WHOLE_FORM: Final = ""
"""Key of errors that belong to no field."""


def parse_fact_form(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the filled fields as arguments of a verb; an `importance` in digits becomes a number."""
    given: dict[str, Any] = {name: form[name] for name in FIELDS if form.get(name)}
    if (importance := parse_whole_number(given.get("importance", ""))) is not None:
        given["importance"] = importance
    return given


def list_errors(error: InvalidBody | AskFailed) -> dict[str, str]:
    """Return the errors by field. The message of a refused request may begin with a field: `text: too short`.

    Raises:
        AskFailed: the error is not about the form: for example, no `retrieve` process answers.
    """
    if isinstance(error, InvalidBody):
        return {error.field if error.field in FIELDS else WHOLE_FORM: error.problem}
    if error.code not in ("refused", "bad_request"):
        raise error
    field, colon, problem = error.message.partition(": ")
    if colon and field in FIELDS:
        return {field: problem}
    return {WHOLE_FORM: error.message}
