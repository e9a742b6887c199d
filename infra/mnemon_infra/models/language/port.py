"""What mnemon asks of a language model."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, Protocol, Self

from mnemon_contracts.events.chat import Role
from mnemon_infra.models.language.provider_error import UNEXPLAINED, ProviderError

Purpose = Literal["extract", "compact"]

NO_KEY: Final = "none"
"""Sent where no key is set: a server of one's own may ask for none, and the SDKs want one."""

MOST_TOKENS: Final = 10**9
"""Tokens of one call that are believed."""


class PromptMessage(NamedTuple):
    """Something that was said; `at` has the zone that the user is shown."""

    seq: int
    role: Role
    text: str
    at: datetime
    name: str | None = None


class PromptFact(NamedTuple):
    """A fact that is known already; `saved_at` has the zone that the user is shown."""

    id: str
    text: str
    saved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One thing to ask.

    Attributes:
        purpose: what it is for.
        instructions: the same, letter for letter, for every request of a purpose: what a provider may cache.
        text: what differs from request to request; it holds `said` and `known`, written for a model.
        said: what is to be read, oldest first; for a purpose `compact` that merges, the earlier summaries.
        known: facts that are known already.
        schema: JSON Schema of the answer; None where plain text is asked for.
        most_tokens: of the answer.
    """

    purpose: Purpose
    instructions: str
    text: str
    said: Sequence[PromptMessage] = ()
    known: Sequence[PromptFact] = ()
    schema: Mapping[str, Any] | None = None
    most_tokens: int = 2000


class Usage(NamedTuple):
    """Tokens: of the request, of them those that were cached, and of the answer."""

    input: int = 0
    cached: int = 0
    output: int = 0

    @classmethod
    def of_counts(cls, asked: object, cached: object, output: object) -> Self:
        """Return the counts that a provider gives; 0 for each that is no count."""
        counted = _count(asked)
        return cls(counted, min(counted, _count(cached)), _count(output))


def _count(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < float("inf"):
        return 0
    return min(int(given), MOST_TOKENS)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the model answered, which is paid for whether it can be used or not.

    Attributes:
        text: as it came; with a schema, JSON most of the time.
        usage: what it took, as far as the provider says.
        is_cut: it ended for want of tokens.
        problem: why it has no text, without a word of what was asked or answered.
        is_refused: the model, or a filter of the provider, will not answer this.
    """

    text: str
    usage: Usage
    is_cut: bool = False
    problem: str | None = None
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request of a batch. Its id has letters, digits and `-` only, 64 characters at most."""

    id: str
    request: ModelRequest


@dataclass(frozen=True, slots=True)
class LineFailed:
    """A request without an answer.

    Attributes:
        error: why, in words without content.
        is_refused: the provider does not take the request. Of a line of a batch that may be for another
            reason than the request: asked online, it is told.
        is_adapted: from now on requests are made otherwise, which may be all that is needed.
        is_unasked: the batch was cancelled, or has expired, before it came to the line.
        usage: of the call that told whether the request is to blame.
    """

    error: str
    is_refused: bool = False
    is_adapted: bool = False
    is_unasked: bool = False
    usage: Usage | None = None


class BatchResult(NamedTuple):
    """A line of a batch, answered or not."""

    line_id: str
    outcome: ModelAnswer | LineFailed


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How a batch fares.

    Attributes:
        state: `ended` has results, perhaps not for every line: cancelled and expired ones have those of the
            lines that were done; `failed` has none.
        done: lines that are done with, one way or the other.
        error: what the provider says of a failed one.
    """

    state: Literal["running", "ended", "failed"]
    done: int = 0
    error: str | None = None


class BatchApi(Protocol):
    """A provider's batches.

    All methods raise `ModelUnavailable` where the provider does not answer, `ModelRefused` where it refuses.
    """

    @property
    def most_lines(self) -> int:
        """Lines of one batch, at most."""

    @property
    def most_bytes(self) -> int:
        """Bytes of one batch's requests, at most."""

    async def submit(self, batch_id: str, lines: Sequence[BatchRequest]) -> str:
        """Hand a batch over; returns the provider's id of it. `batch_id` is ours, `find` goes by it."""

    async def find(self, batch_id: str, lines: int, since: datetime) -> str | None:
        """The provider's id of a batch that may have been submitted; None where there is no such batch.

        Args:
            batch_id: our id of it; ids of its lines begin with it and `-`.
            lines: how many it has.
            since: it was not submitted before.
        """

    async def progress(self, provider_batch_id: str) -> BatchProgress:
        """How it fares."""

    def results(self, provider_batch_id: str) -> AsyncIterator[BatchResult]:
        """What came of an ended batch, line by line, in any order; what cannot be told apart is left out."""

    async def cancel(self, provider_batch_id: str) -> None:
        """End it; harmless where it has ended."""


class LanguageModel(Protocol):
    """A model of a provider. Its errors and logs never carry the key, nor what was asked or answered.

    Attributes:
        provider: `openai`, ...
        model: as the provider names it.
        batches: None where the provider has none.
    """

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def batches(self) -> BatchApi | None: ...

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Ask, and wait for the answer.

        Raises:
            ModelUnavailable: the provider does not answer; the same may work later.
            ModelBusy: the same, as it is asked too much.
            ModelRefused: it refuses the key, the model or the kind of request.
            RequestRefused: it will never take this request.
        """


class ModelUnavailable(Exception):
    """Not now: the provider does not answer, or has no time. `retry_after` are seconds, where it says so."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelBusy(ModelUnavailable):
    """It is asked too much in too little time, whatever it is that is asked."""


class ModelRefused(ModelUnavailable):
    """The provider refuses the key, the model or the kind of request, and will until that is mended."""


class RequestRefused(Exception):
    """The provider will never take this request, such as one that is too long; others it takes.

    Attributes:
        error: what the provider says of it, which the message has once it is known what was asked.
        usage: of another call, which showed that; None where none was answered.
    """

    def __init__(self, message: str, error: ProviderError = UNEXPLAINED, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.usage = usage

    def explained(self, request: ModelRequest, usage: Usage | None) -> "RequestRefused":
        """Return the refusal with what the provider says of it, but for what was asked."""
        said = self.error.described(request.instructions, request.text)
        return RequestRefused(f"{self}: {said}" if said else str(self), self.error, usage)


class ModelNotConfigured(Exception):
    """A package, a model, an address or a key is missing; the message says which."""
