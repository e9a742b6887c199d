"""Reader of the parts of a user's memory: PostgreSQL, and the log where PostgreSQL is behind."""

from typing import Generic, NamedTuple, TypeVar

from mnemon_consumers.retrieve.memory.cache import PositionedValue
from mnemon_consumers.retrieve.memory.log_follower import LogFollower
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Database, await_answer
from mnemon_infra.database.facts import fact_repository as facts
from mnemon_infra.database.memory import documents, summaries, tasks, user_memory
from mnemon_infra.database.messages import counts as message_counts
from mnemon_infra.database.messages import lookup
from mnemon_infra.database.projections.writer import simulate_rows
from mnemon_infra.database.query_batcher import QueryBatcher

MemoryQueryT = TypeVar("MemoryQueryT")
MemoryT = TypeVar("MemoryT")


class ProjectionReading(NamedTuple, Generic[MemoryT]):
    """A part of a user's memory; if `is_settled`, it stays the same until the user's memory changes."""

    result: PositionedValue[MemoryT]
    is_settled: bool


class ProjectionReader:
    """Reads parts of the memory of users; concurrent reads of one part share a round trip.

    Each attribute is the query batcher of one part; `read_part` takes it as `part`.
    """

    def __init__(self, database: Database, follower: LogFollower) -> None:
        self._database = database
        self._follower = follower
        self.messages = QueryBatcher(database, user_memory.load_newest_messages)
        self.profiles = QueryBatcher(database, user_memory.load_profiles)
        self.counts = QueryBatcher(database, user_memory.load_user_counts)
        self.facts = QueryBatcher(database, facts.load_facts)
        self.histories = QueryBatcher(database, facts.load_fact_histories)
        self.summaries = QueryBatcher(database, summaries.load_newest_summaries)
        self.tasks = QueryBatcher(database, tasks.load_tasks)
        self.task_results = QueryBatcher(database, user_memory.load_task_results)
        self.documents = QueryBatcher(database, documents.load_documents)
        self.facts_by_id = QueryBatcher(database, facts.load_facts_by_id)
        self.documents_by_id = QueryBatcher(database, documents.load_documents_by_id)
        self.summaries_by_id = QueryBatcher(database, summaries.load_summaries_by_id)
        self.surroundings = QueryBatcher(database, lookup.load_surroundings)
        self.messages_of_periods = QueryBatcher(database, lookup.load_messages_of_periods)
        self.message_counts = QueryBatcher(database, message_counts.count_messages)

    async def read_part(
        self,
        owner: Owner,
        part: QueryBatcher[MemoryQueryT, MemoryT],
        query: MemoryQueryT,
        min_seq: int | None,
        position: int,
    ) -> ProjectionReading[MemoryT]:
        """Read a part of a user's memory.

        Args:
            owner: the user.
            part: one of the batchers among the attributes.
            query: the query for that batcher.
            min_seq: log position that the answer has to reflect. Events beyond the applied position are read
                from the log, and applied to the answer as if they were projected.
            position: the applied position.

        Raises:
            DatabaseUnavailable: the projections cannot be read now.
            DatabaseRefused: the database refuses a value, such as one of an event beyond the applied
                position.
            nats.errors.Error: the log cannot be read now, although events beyond the applied position are
                needed.
        """
        if self._follower.has_to_read_tail(position, min_seq):
            tail = await self._follower.read_tail(owner, position)
            (value,) = await await_answer(simulate_rows(self._database, tail.rows, part.query([query])))
            return ProjectionReading(PositionedValue(value, tail.seq), is_settled=False)
        seen = PositionedValue(await part.load(query), position)
        # Between a commit and its acknowledgement the value is already right, but the position is too low.
        return ProjectionReading(seen, self._follower.covers_changes(owner, position))
