"""Handler of `retrieve`: opens the resources of the verbs and serves each verb."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

from mnemon_consumers.retrieve.memory.eager_projection import EagerProjection
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.moving_tenant import find_residence_error
from mnemon_consumers.retrieve.search.hit_reranker import HitReranker
from mnemon_consumers.retrieve.search.service import Search
from mnemon_consumers.retrieve.snapshots.snapshot_pool import SnapshotPool
from mnemon_consumers.retrieve.snapshots.snapshot_resolver import SnapshotResolver
from mnemon_consumers.retrieve.verbs.context import ContextVerb
from mnemon_consumers.retrieve.verbs.conversation import ConversationVerbs
from mnemon_consumers.retrieve.verbs.documents import DocumentVerb
from mnemon_consumers.retrieve.verbs.erasure.erase import EraseVerb
from mnemon_consumers.retrieve.verbs.facts.fact_verbs import FactVerbs
from mnemon_consumers.retrieve.verbs.facts.get import GetVerb
from mnemon_consumers.retrieve.verbs.facts.query import FactQuery
from mnemon_consumers.retrieve.verbs.facts.save import SaveVerb
from mnemon_consumers.retrieve.verbs.profile import ProfileVerbs
from mnemon_consumers.retrieve.verbs.search import SearchVerb
from mnemon_consumers.retrieve.verbs.tasks import TaskVerb
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.subjects import Address
from mnemon_contracts.verbs.ask import AskError
from mnemon_infra.broker.admission import Admission, RequestLimits
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.service import AskService, VerbHandler
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.generations.watch import watch_row_swaps
from mnemon_infra.models.reranker import RerankerEndpoint
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.storage.erasure_register import ErasureRegister
from mnemon_infra.vectors.vector_index import VectorIndex

SERVICE: Final = "mnemon"
"""Name of the service, by which tools of NATS list it."""


class RetrieveConsumer:
    """Consumer that answers requests of bots; without `vector_index`, searches are degraded."""

    def __init__(self, database: Database, vector_index: VectorIndex | None, deployment: Deployment) -> None:
        self._database = database
        self._schema = deployment.database_schema
        self._settings = settings = LiveSettings()
        self._memory = memory = Memory(database, settings, deployment.cached_users)
        self.broker = broker = Broker(deployment, "retrieve", on_gap=memory.drop_all)
        self._reranker = RerankerEndpoint(deployment)
        reranker = HitReranker(self._reranker)
        self._search = search = Search(database, memory, vector_index, reranker)
        self._snapshots = SnapshotPool(deployment, settings, vector_index, reranker)
        log = UserLog(broker)
        register = ErasureRegister.open_configured(deployment)
        projection = EagerProjection(broker, database, memory)
        query = FactQuery(memory, search, settings)
        snapshots = SnapshotResolver(broker, database, self._schema, self._snapshots, settings)
        self._service = AskService(
            broker,
            SERVICE,
            version("mnemon"),
            Admission(self._find_request_limits),
            self._find_residence_error,
        )
        conversation = ConversationVerbs(memory, snapshots, log)
        facts = FactVerbs(memory, query, settings, log, projection, database, vector_index)
        answers: dict[str, VerbHandler] = {
            "context": ContextVerb(memory, search if vector_index else None, snapshots, settings).context,
            "history": conversation.history,
            "status": conversation.status,
            "profile": ProfileVerbs(memory, log).profile,
            "get": GetVerb(memory).get,
            "read": facts.read,
            "update": facts.update,
            "forget": facts.forget,
            "save": SaveVerb(broker, memory, log).save,
            "search": SearchVerb(memory, search, snapshots, settings).search,
            "tasks": TaskVerb(memory, log).tasks,
            "document": DocumentVerb(memory, log, settings).document,
            "erase": EraseVerb(broker, log, database, vector_index, register, settings).erase,
        }
        for verb, answer in answers.items():
            self._service.add_endpoint(verb, answer)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer requests until the block ends."""
        async with (
            self.broker.connect() as connection,
            self._settings.watch_bucket(connection),
            watch_row_swaps(self._database, self._schema, self._drop_caches),
        ):
            # Requests are answered only after the subscription to changes.
            await self._memory.follow_changes(connection)
            async with (
                self._reranker.open_connections(),
                self._snapshots.open(),
                self._service.complete_requests(),
                self.broker.run(),
                self._service.show_endpoints(),
            ):
                yield

    def _find_request_limits(self, tenant: str) -> RequestLimits:
        rates = self._settings.get_settings(tenant).rates
        return RequestLimits(rates.requests_per_second, rates.requests_per_user)

    def _find_residence_error(self, address: Address) -> AskError | None:
        residence = self._settings.get_residence(address.tenant)
        return None if residence is None else find_residence_error(residence, address.name)

    def _drop_caches(self) -> None:
        self._memory.drop_all()
        self._search.expire_caches()
