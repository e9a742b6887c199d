"""Deliveries of the events of a reference fold, and the state that the database's readers return for them."""

import json
from collections.abc import Iterable

from psycopg.sql import SQL, Identifier

from mnemon_contracts.subjects import build_chat_subject, build_memory_subject
from mnemon_infra.database.engine import Connection, Database, Query
from mnemon_infra.database.facts import fact_repository
from mnemon_infra.database.generations.generation_repository import PROJECTIONS
from mnemon_infra.database.memory import documents, summaries, tasks, user_memory
from mnemon_infra.database.memory.user_memory import NewestMessagesQuery
from mnemon_infra.delivery import Delivery
from tests.support.log.reference_fold import TENANT, USER, ReferenceEvent, ReferenceState


def delivery_of(event: ReferenceEvent, user: str = USER) -> Delivery:
    subject = (
        build_memory_subject(TENANT, user, event.kind)
        if "." in event.kind
        else build_chat_subject(TENANT, user, event.conversation, event.kind)
    )
    body = json.dumps(_body_of(event)).encode()
    return Delivery(subject, body, event.id, "LOG", event.seq, 1, 1.8e9 + event.seq)


def _body_of(event: ReferenceEvent) -> dict[str, object]:
    fact = {"text": event.id}
    match event.kind:
        case "message":
            return {"role": "user", "content": event.id}
        case "started":
            return {"discard_previous": event.discard}
        case "cleared":
            return {}
        case "profile.set":
            return {"fields": event.fields}
        case "user.erased":
            return {"up_to_seq": event.up_to}
        case "fact.saved" | "fact.confirmed":
            return {"fact_id": event.item, "fact": fact, "decision": {"proposal_id": f"of {event.id}"}}
        case "fact.updated":
            return {"fact_id": event.item, "fact": fact, "former": {"text": "whatever"}}
        case "fact.merged":
            return {
                "fact_id": event.item,
                "fact": fact,
                "former": {"text": "whatever"},
                "merged_id": "another",
                "relation": "same",
                "compared_id": f"of {event.id}",
            }
        case "fact.compared":
            others = {"other_id": "another", "version": "one", "other_version": "other"}
            return {"fact_id": event.item, "relation": "different", **others}
        case "fact.rejected":
            return {"fact_id": event.item, "proposal_id": f"of {event.id}", "reason": "too_short"}
        case "summary.written" | "summary.merged":
            covered = {"from_seq": event.from_seq, "to_seq": event.seq, "merged": event.merged}
            return {
                "summary_id": event.id,
                "conversation": event.conversation,
                "text": event.id,
                **covered,
            }
    about = {
        f"{event.kind.partition('.')[0]}_id": event.item,
        "expires_at": "2020-01-01T00:00:00Z",
        "tier": "archive",
        "limit": 1,
    }
    return {**about, "text": event.id}


def shown(places: Iterable[str], user: str = USER) -> Query[ReferenceState]:
    """Return a query for the state of a user as requests read it; its `texts` stay empty.

    Args:
        places: conversations to read, besides the current one, `c1` and `c2`.
        user: the user.
    """

    async def query(connection: Connection) -> ReferenceState:
        owner = TENANT, user
        (now,) = await user_memory.load_newest_messages([NewestMessagesQuery(*owner, None, 100)])(connection)
        state = ReferenceState(now.conversation)
        wanted = [
            NewestMessagesQuery(*owner, place, 100)
            for place in sorted({*places, now.conversation, "c1", "c2"})
        ]
        for place, view, written in zip(
            [str(each.conversation) for each in wanted],
            await user_memory.load_newest_messages(wanted)(connection),
            await summaries.load_newest_summaries(wanted)(connection),
            strict=True,
        ):
            if view.messages:
                state.messages[place] = [row.event_id for row in view.messages]
            if written:
                state.summaries[place] = {summary.text for summary in written}
        (counted,) = await user_memory.load_user_counts([owner])(connection)
        assert counted.messages == sum(len(said) for said in state.messages.values())
        assert counted.conversations == len(state.messages)
        (state.profile,) = await user_memory.load_profiles([owner])(connection)
        state.facts = await _facts(connection, owner)
        (found,) = await tasks.load_tasks([owner])(connection)
        state.tasks = {task.id: (task.text, task.done) for task in found}
        (entries,) = await documents.load_documents([owner])(connection)
        (texts,) = await documents.load_documents_by_id([(owner, ["x", "y"])])(connection)
        assert [entry.id for entry in entries] == [document.id for document in texts]
        state.documents = {document.id: document.text for document in texts}
        return state

    return query


async def _facts(connection: Connection, owner: tuple[str, str]) -> dict[str, list[str]]:
    (live,) = await fact_repository.load_facts([owner])(connection)
    found = {}
    for fact, history in zip(
        live,
        await fact_repository.load_fact_histories([(owner, fact.id) for fact in live])(connection),
        strict=True,
    ):
        assert history is not None
        assert history.fact == fact
        found[fact.id] = [fact.text, *(version.text for version in history.versions)]
    (by_id,) = await fact_repository.load_facts_by_id([(owner, ["y", "z", "x"])])(connection)
    assert [fact.id for fact in by_id] == [item for item in ("y", "x") if item in found]
    return found


async def texts_of(database: Database, user: str = USER) -> set[str]:
    """Return the texts that the rows of a user's memory events have."""
    return await _column(
        database,
        "SELECT coalesce(body ->> 'text', body #>> '{{fact,text}}') FROM memory_events"
        " WHERE user_id = {} AND body IS NOT NULL AND event IN ('fact.saved', 'fact.updated', 'fact.merged',"
        " 'summary.written', 'summary.merged', 'task.added', 'document.added')",
        user,
    )


async def contents_of(database: Database, user: str = USER) -> set[str]:
    """Return the event ids of the user's messages whose rows have content."""
    return await _column(
        database, "SELECT event_id FROM messages WHERE user_id = {} AND content IS NOT NULL", user
    )


async def _column(database: Database, statement: str, user: str) -> set[str]:
    async with database.transaction() as connection:
        left = await connection.execute(SQL(statement).format(user))
        return {text for (text,) in await left.fetchall()}


async def forget_all(database: Database) -> None:
    async with database.transaction() as connection:
        for table in PROJECTIONS:
            await connection.execute(SQL("DELETE FROM {}").format(Identifier(table.name)))
