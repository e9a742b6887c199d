"""Check that `dedupe` has decided every proposal exactly once."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from nats.aio.client import Client

from mnemon.operations.audit.ledger import AuditFaults, DedupeOutcomes
from mnemon_consumers.dedupe.decide import derive_decision_id
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent, find_contract, upcast_body
from mnemon_contracts.events.memory import FactProposedV1, FactRejectedV1
from mnemon_contracts.subjects import InvalidSubject, build_thing_filter, parse_subject
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.users import load_erasures
from mnemon_infra.database.facts.decisions import ProposalRecord, count_decisions, find_undecided_proposals
from mnemon_infra.database.projections.rows import decode_event
from mnemon_infra.delivery import Delivery

MAX_SEARCHED: Final = 1000
"""Maximum number of proposals whose decisions are searched for in the log; the others count as undecided."""


class ProposalAudit:
    """Proposals that have no projected decision, collected from pages of the log.

    `position` is the log position up to which `dedupe` has decided.
    """

    def __init__(self, database: Database, position: int) -> None:
        self.outcomes = DedupeOutcomes(position)
        self._database = database
        self._undecided: list[ProposalRecord] = []

    async def collect_page(self, page: Sequence[Delivery]) -> None:
        """Count the proposals of a page, and collect those that have no projected decision.

        Raises:
            DatabaseUnavailable: the database cannot answer now.
        """
        proposed = [
            each
            for delivery in page
            if delivery.sequence <= self.outcomes.position
            if (each := parse_proposal(delivery))
        ]
        if proposed:
            self.outcomes.proposals += len(proposed)
            self._undecided += await find_undecided_proposals(self._database, proposed)

    async def record_faults(self, connection: Client, up_to: int, faults: AuditFaults) -> None:
        """Add a fault for each undecided proposal, and for the last decision on each that has several.

        A decision may be in the log and not projected yet: for at most `MAX_SEARCHED` proposals, the log is
        searched for the decision.

        Raises:
            DatabaseUnavailable, nats.errors.Error: a server does not answer.
        """
        self.outcomes.outcomes, twice = await count_decisions(self._database, up_to)
        for seq in twice:
            faults.add("decided_twice", seq, "dedupe", "memory_events")
        # An erasure removes the decision, and the audit may have read the proposal before the erasure.
        erased = await self._database.run_query(load_erasures([each.owner for each in self._undecided]))
        left = [
            each for each in self._undecided if not erased[each.owner].removes_fact(each.seq, each.lineage)
        ]
        for place, proposal in enumerate(left):
            if place >= MAX_SEARCHED or not await _is_in_log(connection, proposal):
                faults.add("undecided", proposal.seq, "dedupe", "memory_events", proposal.event_id)


def parse_proposal(delivery: Delivery) -> ProposalRecord | None:
    """Return the proposal of a delivery; None for other events and for those that `persist` cannot handle."""
    if ".fact.proposed." not in delivery.subject:
        return None
    try:
        address, event, event_id = decode_event(delivery)
    except (InvalidSubject, UnknownEvent, InvalidBody):
        return None
    if not isinstance(event, FactProposedV1):
        return None
    owner = address.owner
    return ProposalRecord(delivery.sequence, owner, event_id, derive_decision_id(event_id), event.lineage)


async def _is_in_log(connection: Client, proposal: ProposalRecord) -> bool:
    pattern = build_thing_filter(*proposal.owner, "fact")
    async with aclosing(read_event_pages(connection, pattern, proposal.seq)) as answers:
        async for page in answers:
            if any(proposal.event_id == _get_decided_proposal(delivery) for delivery in page):
                return True
    return False


def _get_decided_proposal(delivery: Delivery) -> str | None:
    """Return the id of the proposal that an event decides; None if the event decides no proposal."""
    try:
        address = parse_subject(delivery.subject)
        event = upcast_body(find_contract(address), address.version, delivery.body)
    except (InvalidSubject, UnknownEvent, InvalidBody):
        return None
    decision = event if isinstance(event, FactRejectedV1) else getattr(event, "decision", None)
    return decision.proposal_id if decision else None
