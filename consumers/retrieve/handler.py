"""Answers requests: opens what the verbs need, and serves each of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

from consumers.retrieve.memory import Memory
from consumers.retrieve.opened import Opened
from consumers.retrieve.past import Past
from consumers.retrieve.projection import Projection
from consumers.retrieve.search.service import Search
from consumers.retrieve.verbs.context import ContextVerb
from consumers.retrieve.verbs.conversation import ConversationVerbs
from consumers.retrieve.verbs.documents import DocumentVerb
from consumers.retrieve.verbs.erasing import EraseVerb
from consumers.retrieve.verbs.fact_query import FactQuery
from consumers.retrieve.verbs.facts import FactVerbs
from consumers.retrieve.verbs.forget import ForgetVerb
from consumers.retrieve.verbs.get import GetVerb
from consumers.retrieve.verbs.profile import ProfileVerbs
from consumers.retrieve.verbs.saving import SaveVerb
from consumers.retrieve.verbs.search import SearchVerb
from consumers.retrieve.verbs.tasks import TaskVerb
from consumers.retrieve.verbs.user_log import UserLog
from infra.broker.admission import Admission, Bounds
from infra.broker.lifetime import build_broker, connected, started
from infra.broker.service import AskService
from infra.config import Deployment
from infra.database.engine import Database
from infra.database.generation_watch import watch_switches
from infra.finding import Finding
from infra.settings.store import LiveSettings

NAME: Final = "mnemon"


@asynccontextmanager
async def consuming(
    database: Database, finding: Finding | None, deployment: Deployment
) -> AsyncIterator[None]:
    """Answer requests as long as the block lasts; without `finding` nothing is searched."""
    settings = LiveSettings()
    memory = Memory(database, settings, deployment.cached_users)
    broker = build_broker(deployment, "retrieve", on_gap=memory.forget)
    log = UserLog(broker)
    projection = Projection(broker, database, memory)
    search = Search(database, memory, finding)
    query = FactQuery(memory, search, settings)
    opened = Opened(deployment, settings, finding)
    past = Past(broker, database, deployment.database_schema, opened)
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
        # Nothing is answered before changes are heard of.
        await memory.follow(connection)
        async with opened.kept(), service.completed(), started(broker), service.listed():
            yield
