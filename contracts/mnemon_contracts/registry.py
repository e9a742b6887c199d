"""All events and verbs, with their versions, and the senders and consumers of each event."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from mnemon_contracts.base import Contract, Event, InvalidBody
from mnemon_contracts.events import chat, erasure, fact_comparison, memory
from mnemon_contracts.verbs import ask, tools

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""A pure function from a body of version N to a body of version N + 1."""


@dataclass(frozen=True, slots=True)
class EventContract:
    """Contract of an event: its versions, and the senders and consumers of the event.

    `versions[0]` is v1. `upcasters[0]` converts v1 to v2, so there is one upcaster fewer than versions.
    """

    space: Literal["chat", "memory"]
    name: str
    versions: tuple[type[Event], ...]
    producers: tuple[str, ...]
    consumers: tuple[str, ...]
    upcasters: tuple[Upcaster, ...] = ()

    @property
    def latest(self) -> type[Event]:
        return self.versions[-1]


@dataclass(frozen=True, slots=True)
class VerbContract:
    """Contract of a verb: its requests and replies by version; `requests[0]` is v1.

    Attributes:
        only_reads: whether no request changes memory, so that the scope `read` of an API key suffices.
        is_slow: whether the reply waits for a decision, an erasure, or the first load of the lexicon; then
            clients wait longer. `SLOW_VERBS` of the TypeScript client has the same verbs.
        takes_key: whether the gateway reads the header `Idempotency-Key`, with which a repeated request has
            its effect once.
    """

    name: str
    requests: tuple[type[Contract], ...]
    replies: tuple[type[ask.Reply], ...]
    only_reads: bool = False
    is_slow: bool = False
    takes_key: bool = False

    def find_oldest_version(self, request: Contract) -> int:
        """Return the oldest version that accepts a request; fields that are not set, or None, do not count.

        So a deployment that lacks the newest version can answer the request.
        """
        said = {
            name: value for name in request.model_fields_set if (value := getattr(request, name)) is not None
        }
        for version, contract in enumerate(self.requests[:-1], start=1):
            with suppress(InvalidBody):
                contract.create_strict(**said)
                return version
        return len(self.requests)


def _define_chat(name: str, *versions: type[Event]) -> EventContract:
    return EventContract("chat", name, versions, ("bot", "importer"), consumers=("persist", "index"))


def _define_memory(
    name: str, version: type[Event], *producers: str, also: tuple[str, ...] = ()
) -> EventContract:
    return EventContract("memory", name, (version,), producers, consumers=("persist", *also))


EVENTS: Mapping[str, EventContract] = {
    event.name: event
    for event in (
        _define_chat("message", chat.MessageV1),
        _define_chat("started", chat.StartedV1),
        _define_chat("cleared", chat.ClearedV1),
        _define_memory(
            "fact.proposed", memory.FactProposedV1, "retrieve", "extract", "importer", also=("dedupe",)
        ),
        _define_memory("fact.saved", memory.FactSavedV1, "dedupe", "importer", also=("index",)),
        _define_memory(
            "fact.updated", memory.FactUpdatedV1, "dedupe", "retrieve", "importer", also=("index",)
        ),
        _define_memory("fact.confirmed", memory.FactConfirmedV1, "dedupe", "importer"),
        _define_memory("fact.compared", fact_comparison.FactComparedV1, "extract", also=("dedupe",)),
        _define_memory("fact.merged", fact_comparison.FactMergedV1, "dedupe", "importer", also=("index",)),
        _define_memory("fact.rejected", memory.FactRejectedV1, "dedupe"),
        _define_memory(
            "fact.forgotten", memory.FactForgottenV1, "dedupe", "retrieve", "importer", also=("index",)
        ),
        _define_memory("fact.expired", memory.FactExpiredV1, "maintain", "importer", also=("index",)),
        _define_memory("fact.evicted", memory.FactEvictedV1, "dedupe", "importer", also=("index",)),
        _define_memory("summary.written", memory.SummaryWrittenV1, "compact", "importer", also=("index",)),
        _define_memory("summary.merged", memory.SummaryMergedV1, "compact", "importer", also=("index",)),
        _define_memory("profile.set", memory.ProfileSetV1, "retrieve", "importer"),
        _define_memory("task.added", memory.TaskAddedV1, "retrieve", "importer"),
        _define_memory("task.done", memory.TaskDoneV1, "retrieve", "importer"),
        _define_memory("task.removed", memory.TaskRemovedV1, "retrieve", "importer"),
        _define_memory("document.added", memory.DocumentAddedV1, "retrieve", "importer", also=("index",)),
        _define_memory("document.removed", memory.DocumentRemovedV1, "retrieve", "importer", also=("index",)),
        _define_memory("batch.intended", memory.BatchIntendedV1, "extract"),
        _define_memory("batch.submitted", memory.BatchSubmittedV1, "extract"),
        _define_memory("batch.completed", memory.BatchCompletedV1, "extract"),
        _define_memory("batch.failed", memory.BatchFailedV1, "extract"),
        _define_memory("window.answered", memory.WindowAnsweredV1, "extract", "importer"),
        EventContract(
            "memory",
            "model.called",
            (memory.ModelCalledV1, memory.ModelCalledV2),
            producers=("extract", "compact", "gateway"),
            consumers=("persist",),
            upcasters=(dict,),
        ),
        _define_memory("user.erased", erasure.UserErasedV1, "retrieve", also=("index",)),
    )
}

VERBS: Mapping[str, VerbContract] = {
    verb.name: verb
    for verb in (
        VerbContract("context", (ask.ContextV1,), (ask.ContextReplyV1,), only_reads=True),
        VerbContract(
            "search",
            (tools.SearchV1, tools.SearchV2),
            (tools.SearchReplyV1, tools.SearchReplyV2),
            only_reads=True,
        ),
        VerbContract("history", (ask.HistoryV1,), (ask.HistoryReplyV1,), only_reads=True),
        VerbContract("save", (tools.SaveV1,), (tools.SaveReplyV1,), is_slow=True, takes_key=True),
        VerbContract("read", (tools.ReadV1,), (tools.FactsReplyV1,), only_reads=True),
        VerbContract(
            "get", (tools.GetV1, tools.GetV2), (tools.GetReplyV1, tools.GetReplyV1), only_reads=True
        ),
        VerbContract(
            "update",
            (tools.UpdateV1, tools.UpdateV2),
            (tools.FactReplyV1, tools.UpdateReplyV2),
            is_slow=True,
            takes_key=True,
        ),
        VerbContract("forget", (tools.ForgetV1,), (tools.ForgetReplyV1,), is_slow=True, takes_key=True),
        VerbContract("profile", (ask.ProfileV1,), (ask.ProfileReplyV1,), takes_key=True),
        VerbContract("tasks", (tools.TasksV1,), (tools.TasksReplyV1,), takes_key=True),
        VerbContract("document", (tools.DocumentV1,), (tools.DocumentReplyV1,), takes_key=True),
        VerbContract("erase", (tools.EraseV1,), (tools.EraseReplyV1,), is_slow=True),
        VerbContract("status", (ask.StatusV1,), (ask.StatusReplyV1,), only_reads=True),
    )
}
