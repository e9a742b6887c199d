"""Facts in forms: what may be chosen, what was typed, and which field is wrong."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from mnemon.admin.forms.fields import whole_number
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import Kind, Tier
from mnemon_producers.errors import AskFailed

TIERS: Final[Mapping[Tier, str]] = {
    "profile": "always shown to the model",
    "working": "shown until its date",
    "archive": "shown when a query finds it",
}

_AS_CLASSIFIED: Final = ("", "classified automatically")
KINDS: Final = [(kind, kind.replace("_", " ")) for kind in get_args(Kind)]
TIER_CHOICES: Final = [(tier, tier) for tier in TIERS]
TIER_HINT: Final = "; ".join(f"{tier}: {what}" for tier, what in TIERS.items())
FREE_KINDS: Final = [_AS_CLASSIFIED, *KINDS]
FREE_TIERS: Final = [_AS_CLASSIFIED, *TIER_CHOICES]

FIELDS: Final = ("text", "kind", "tier", "importance", "expires_at")

ELSEWHERE: Final = ""
"""The field of an error that is of none."""


def typed(form: Mapping[str, str]) -> dict[str, Any]:
    """What was filled in, as the verbs want it; `importance` is a number where it looks like one."""
    given: dict[str, Any] = {name: form[name] for name in FIELDS if form.get(name)}
    if (importance := whole_number(given.get("importance", ""))) is not None:
        given["importance"] = importance
    return given


def errors(error: InvalidBody | AskFailed) -> dict[str, str]:
    """What is wrong, by field. What the memory refuses names its field first: `text: too short`.

    Raises:
        AskFailed: it is about no form; the memory does not answer.
    """
    if isinstance(error, InvalidBody):
        return {error.field if error.field in FIELDS else ELSEWHERE: error.problem}
    if error.code not in ("refused", "bad_request"):
        raise error
    field, colon, problem = error.message.partition(": ")
    if colon and field in FIELDS:
        return {field: problem}
    return {ELSEWHERE: error.message}
