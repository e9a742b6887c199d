"""Rewrite of a fact by the verb `update`, and the rules that refuse it. No I/O, no clock."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from mnemon_consumers.domain.policy.default_expiry import compute_rewritten_expiry
from mnemon_consumers.domain.policy.expiry.text import find_expiry
from mnemon_consumers.domain.policy.wording import join_lines, join_words
from mnemon_consumers.retrieve.verbs.facts.view import convert_importance
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import Fact
from mnemon_contracts.settings.groups import FactLimits, SettingsV1
from mnemon_contracts.verbs.tools import FactChanges
from mnemon_infra.database.facts.fact_repository import FactRecord


class FactConflict(NamedTuple):
    """The reason why a changed fact cannot be kept.

    Attributes:
        field: the field of the fact that cannot have its new value.
        problem: the reason why the value is refused, and the next step.
    """

    field: str
    problem: str


def rewrite_fact(former: Fact, request: FactChanges, at: datetime, settings: SettingsV1) -> Fact:
    """Return the fact with the requested changes. Omitted fields stay, except `expires_at` and `names`.

    `expires_at` is that of the request. If the request has none: in the tier `working`, a new text that names
    an end, such as "until Friday", sets it; any other new text or tier may clear or set it, see
    `compute_rewritten_expiry`. A new text clears `names`, which a model extracted from the former text.

    Raises:
        InvalidBody: a field is invalid.
    """
    if request.expires_at is not None and request.expires_at <= at:
        raise InvalidBody(
            "expires_at", "the time is in the past; give a later time, or remove the fact with `forget`"
        )
    wanted = request.model_dump(exclude={"id", "query", "importance"}, exclude_none=True)
    if request.text is not None:
        wanted["text"] = join_lines(request.text)
    importance = convert_importance(request.importance)
    if importance is not None:
        wanted["importance"] = importance
    text, tier = wanted.get("text", former.text), request.tier or former.tier
    end = find_expiry(text, at, settings.time_stamps.zone) if text != former.text else None
    kept = {
        "expires_at": compute_rewritten_expiry(former, text, end, tier, at, settings.limits),
        "names": former.names if text == former.text else (),
    }
    return Fact.create_strict(**former.model_dump() | kept | wanted)


def find_conflict(
    fact: Fact, former: Fact, others: Iterable[FactRecord], limits: FactLimits
) -> FactConflict | None:
    """Return the conflict of a changed fact; None without a conflict.

    A conflict is another fact with the same words, or a tier without room for the fact. Only a text or a tier
    that differs from that of `former`, the fact before the change, can be in conflict.
    """
    others = list(others)
    if fact.text != former.text:
        said = join_words(fact.text)
        for other in others:
            if join_words(other.text) == said:
                return FactConflict(
                    "text", f"{other.id} says the same; forget one of the two facts, or give another text"
                )
    if fact.tier != former.tier and fact.tier != "archive":
        limit = limits.profile if fact.tier == "profile" else limits.working
        if sum(other.tier == fact.tier for other in others) >= limit:
            return FactConflict(
                "tier",
                f"{fact.tier} is full, limit {limit}; forget one of its facts, or move one to the tier "
                "archive",
            )
    return None
