"""Answers requests: opens the resources of the verbs and serves each verb."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

from mnemon_consumers.retrieve.eager_projection import EagerProjection
from mnemon_consumers.retrieve.memory import Memory
from mnemon_consumers.retrieve.search.service import Search
from mnemon_consumers.retrieve.snapshot_pool import SnapshotPool
from mnemon_consumers.retrieve.snapshot_resolver import SnapshotResolver
from mnemon_consumers.retrieve.verbs.context import ContextVerb
from mnemon_consumers.retrieve.verbs.conversation import ConversationVerbs
from mnemon_consumers.retrieve.verbs.documents import DocumentVerb
from mnemon_consumers.retrieve.verbs.erasure.user import EraseVerb
from mnemon_consumers.retrieve.verbs.facts.forget import ForgetVerb
from mnemon_consumers.retrieve.verbs.facts.get import GetVerb
from mnemon_consumers.retrieve.verbs.facts.query import FactQuery
from mnemon_consumers.retrieve.verbs.facts.read_and_update import FactVerbs
from mnemon_consumers.retrieve.verbs.facts.save import SaveVerb
from mnemon_consumers.retrieve.verbs.profile import ProfileVerbs
from mnemon_consumers.retrieve.verbs.search import SearchVerb
from mnemon_consumers.retrieve.verbs.tasks import TaskVerb
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_infra.broker.admission import Admission, Bounds
from mnemon_infra.broker.lifetime import build_broker, connected, started
from mnemon_infra.broker.service import AskService
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.watch import watch_switches
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.vector_index import VectorIndex

NAME: Final = "mnemon"


@asynccontextmanager
async def consuming(
    database: Database, finding: VectorIndex | None, deployment: Deployment
) -> AsyncIterator[None]:
    """Answer requests until the block ends; without `finding` there is no search."""
    settings = LiveSettings()
    memory = Memory(database, settings, deployment.cached_users)
    broker = build_broker(deployment, "retrieve", on_gap=memory.forget)
    log = UserLog(broker)
    projection = EagerProjection(broker, database, memory)
    search = Search(database, memory, finding)
    query = FactQuery(memory, search, settings)
    opened = SnapshotPool(deployment, settings, finding)
    past = SnapshotResolver(broker, database, deployment.database_schema, opened)
    answers = {
        **ContextVerb(memory, search if finding else None, past, settings).answers,
        **ConversationVerbs(memory, past, log).answers,
        **ProfileVerbs(memory, log).answers,
        **GetVerb(memory).answers,
        **FactVerbs(memory, query, settings, log, projection, database, finding).answers,
        **ForgetVerb(memory, query, log, projection, database, finding).answers,
        **SaveVerb(broker, memory, log).answers,
        **SearchVerb(memory, search, past, settings).answers,
        **TaskVerb(memory, log).answers,
        **DocumentVerb(memory, log, settings).answers,
        **EraseVerb(broker, log, database, finding).answers,
    }

    def bounds(tenant: str) -> Bounds:
        rates = settings.of(tenant).rates
        return Bounds(rates.requests_per_second, rates.requests_per_user)

    service = AskService(broker, NAME, version("mnemon"), Admission(bounds))
    for verb, answer in answers.items():
        service.endpoint(verb, answer)

    def forget() -> None:
        memory.forget()
        search.forget()

    async with (
        connected(broker) as connection,
        settings.watched(connection),
        watch_switches(database, deployment.database_schema, forget),
    ):
        # Requests are answered only after the subscription to changes.
        await memory.follow(connection)
        async with opened.kept(), service.completed(), started(broker), service.listed():
            yield
