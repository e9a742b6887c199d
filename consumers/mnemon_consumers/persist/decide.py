"""Decision on each event of a batch: its row and the outcome of its delivery. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mnemon_consumers.domain.policy.secrets.long_texts import find_secret_in_long_text
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.settings.groups import Policy
from mnemon_contracts.subjects import InvalidSubject, Owner
from mnemon_infra.broker.outcomes import ACK, Ack, Dead, DeliveryOutcome
from mnemon_infra.broker.streams.restored_log import FILLER_SUBJECT
from mnemon_infra.database.projections.rows import Row, Rows, build_row
from mnemon_infra.delivery import Delivery

NOT_PROJECTED: Final = Ack("no projection reads the event yet")
IS_FILLER: Final = Ack("a filler of a restore or a move is not an event")


@dataclass(frozen=True, slots=True)
class PersistPlan:
    """Plan for a batch of deliveries.

    Attributes:
        rows: the rows to write.
        outcomes: the outcome of each delivery after the write, in the order of the deliveries.
        moved: users with events that a move of their tenant has copied into this log. `compact` and `extract`
            get no triggers for these users from `persist`, because the move publishes the triggers at its
            end.
    """

    rows: Rows = field(default_factory=Rows)
    outcomes: list[DeliveryOutcome] = field(default_factory=list)
    moved: set[Owner] = field(default_factory=set)


def plan_batch(deliveries: Sequence[Delivery]) -> PersistPlan:
    """Return the rows of a batch's events, and the outcome of each delivery."""
    batch = PersistPlan()
    for delivery in deliveries:
        row, outcome = decide_outcome(delivery)
        if row is not None:
            batch.rows.add(row)
        if row is not None and delivery.is_moved:
            batch.moved.add(row.key[:2])
        batch.outcomes.append(outcome)
    return batch


def decide_outcome(delivery: Delivery) -> tuple[Row | None, DeliveryOutcome]:
    """Return the row of an event, and the outcome of its delivery after the write.

    The row is None if the event has no row.
    """
    if delivery.subject == FILLER_SUBJECT:
        return None, IS_FILLER
    try:
        row = build_row(delivery)
    except InvalidSubject as error:
        return None, Dead("invalid_subject", str(error))
    except UnknownEvent as error:
        return None, Dead("unknown_event", str(error))
    except InvalidBody as error:
        return None, Dead("invalid_body", str(error), is_confidential=_holds_secret(delivery))
    return row, NOT_PROJECTED if row is None else ACK


def _holds_secret(delivery: Delivery) -> bool:
    """Return whether a dead letter with the delivery's body would show a secret that a fact may not hold."""
    return find_secret_in_long_text(delivery.body.decode(errors="replace"), Policy()) is not None
