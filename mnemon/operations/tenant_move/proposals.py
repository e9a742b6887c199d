"""Undecided proposals of a tenant that has moved, which are proposed again where it lives now."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from nats.js.errors import NotFoundError

from mnemon.operations.audit.proposals import parse_proposal
from mnemon.operations.backup.segments import select_headers
from mnemon.operations.tenant_move.deployment import TenantSite
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_tenant_event_filter
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.database.erasure.users import load_erasures
from mnemon_infra.database.facts.decisions import ProposalRecord, find_undecided_proposals
from mnemon_infra.delivery import MOVED

_PROPOSED: Final = "fact.proposed"


async def repeat_undecided_proposals(site: TenantSite) -> int:
    """Publish each undecided proposal of a tenant again, with its id. Return their number.

    `dedupe` does not decide on copied proposals, because a copy arrives before the copy of its decision.

    Raises:
        DatabaseUnavailable, nats.errors.Error: a server does not answer. The call can be repeated.
    """
    repeated: set[tuple[str, str]] = set()
    stream_context = site.connection.jetstream()
    async with aclosing(_stream_undecided_proposals(site)) as found:
        async for proposal in found:
            key = proposal.owner[1], proposal.event_id
            if key in repeated:
                continue
            try:
                message = await stream_context.get_msg(LOG, proposal.seq)
            except NotFoundError:
                continue  # erased since
            headers = {
                name: value
                for name, value in select_headers(message.headers or {}).items()
                if name not in (MOVED, MESSAGE_ID)
            }
            await stream_context.publish(
                str(message.subject),
                message.data or b"",
                stream=LOG,
                headers={**headers, MESSAGE_ID: proposal.event_id},
            )
            repeated.add(key)
    return len(repeated)


async def _stream_undecided_proposals(site: TenantSite) -> AsyncGenerator[ProposalRecord, None]:
    pattern = build_tenant_event_filter(site.tenant, _PROPOSED)
    async with aclosing(read_event_pages(site.connection, pattern, 0)) as pages:
        async for page in pages:
            proposed = [each for delivery in page if (each := parse_proposal(delivery))]
            undecided = await find_undecided_proposals(site.database, proposed)
            erased = await site.database.run_query(load_erasures([each.owner for each in undecided]))
            for each in undecided:
                if not erased[each.owner].removes_fact(each.seq, each.lineage):
                    yield each
