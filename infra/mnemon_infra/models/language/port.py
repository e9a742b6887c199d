"""Port for language models: answer a request, submit a batch, read its results."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, Protocol, Self

from mnemon_contracts.events.chat import Role
from mnemon_infra.models.language.provider_error import UNEXPLAINED, ProviderError

Purpose = Literal["extract", "compact"]

REFUSED_BATCH: Final = "check the account at the provider, or set extraction.mode=online"
"""Next step in the message about a refused request of a batch interface."""

CLOCK_TOLERANCE: Final = timedelta(minutes=10)
"""Tolerance for a provider's clock that is behind this machine's, in the search for a submitted batch."""

MOST_TOKENS: Final = 10**9
"""Largest number of tokens of one call that is recorded, even if a provider reports a larger one."""


class PromptMessage(NamedTuple):
    """A message in a prompt, or an earlier summary.

    `seq` is the position of the message in the log, or of the last message that the summary covers. `at` is
    in the time zone in which the user sees times.
    """

    seq: int
    role: Role
    text: str
    at: datetime
    name: str | None = None


class PromptFact(NamedTuple):
    """A known fact in a prompt; `saved_at` is in the time zone in which the user sees times."""

    id: str
    text: str
    saved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    Attributes:
        purpose: the work that the answer is for: `extract` or `compact`.
        instructions: the constant part, the same for all requests of a purpose and a tenant, so that
            providers can cache it.
        text: the variable part; it contains `messages` and `known`, written for a model.
        messages: the messages to read, oldest first; if `compact` merges summaries, the earlier summaries.
        known: the user's facts that are kept already.
        schema: JSON Schema of the answer; None for plain text.
        most_tokens: maximum number of tokens of the answer.
    """

    purpose: Purpose
    instructions: str
    text: str
    messages: Sequence[PromptMessage] = ()
    known: Sequence[PromptFact] = ()
    schema: Mapping[str, Any] | None = None
    most_tokens: int = 2000


class Usage(NamedTuple):
    """Tokens of the request, of its cached part, and of the answer."""

    input: int = 0
    cached: int = 0
    output: int = 0

    @classmethod
    def from_counts(cls, input_: object, cached: object, output: object) -> Self:
        """Return the counts that a provider gives, with 0 for each value that is not a count.

        A count above `MOST_TOKENS` becomes `MOST_TOKENS`. If there are more cached tokens than tokens of the
        request, the count of cached tokens becomes that of the request.
        """
        counted = _parse_count(input_)
        return cls(counted, min(counted, _parse_count(cached)), _parse_count(output))


def _parse_count(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < float("inf"):
        return 0
    return min(int(given), MOST_TOKENS)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer of a model, which is paid for even if it is unusable.

    Attributes:
        text: the text without the model's thoughts; with a schema, usually JSON.
        usage: tokens of the call, as far as the provider says.
        is_cut: True if the answer ended because it reached the maximum number of tokens, or the end of the
            model's context.
        problem: the reason why the answer has no text, without any content of request or answer; None if it
            has text, or if it was cut before any text.
        is_refused: True if the model, or a filter of the provider, refuses to answer.
    """

    text: str
    usage: Usage
    is_cut: bool = False
    problem: str | None = None
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request of a batch. Its id has at most 64 characters: letters, digits and `-`."""

    id: str
    request: ModelRequest


@dataclass(frozen=True, slots=True)
class LineFailed:
    """The outcome of a line of a batch, or of an online request, that has no answer.

    Attributes:
        error: the reason, without content.
        is_refused: True if the provider refuses the line. Send the request online to learn whether the
            request is the reason.
        is_adapted: True if further requests are sent in another form, with which the line may succeed.
        is_unasked: True if the batch was cancelled or has expired before it reached the line.
        usage: tokens of a test request that was sent to find the reason; None if none was sent.
    """

    error: str
    is_refused: bool = False
    is_adapted: bool = False
    is_unasked: bool = False
    usage: Usage | None = None


class BatchResult(NamedTuple):
    """The outcome of one line of a batch."""

    line_id: str
    outcome: ModelAnswer | LineFailed


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """State of a batch at the provider.

    Attributes:
        state: state of the batch. An `ended` batch has results, perhaps not for every line: a cancelled or
            expired batch has the results of the finished lines, or none. A `failed` batch has no results.
            An `unknown` batch does not exist at the provider: it was deleted, or the key or the URL is that
            of another account or server.
        done: number of lines that are finished, with or without success.
        error: the reason for a failed batch, without content; None for other batches.
    """

    state: Literal["running", "ended", "failed", "unknown"]
    done: int = 0
    error: str | None = None


class BatchApi(Protocol):
    """A provider's interface for batches: submit and cancel a batch, follow it, and read its results.

    All methods raise `ModelUnavailable` if the provider gives no usable answer, and `ModelRefused` if the
    provider refuses the key, the model or the batch.
    """

    @property
    def most_lines(self) -> int:
        """Maximum number of lines of one batch."""

    @property
    def most_bytes(self) -> int:
        """Maximum bytes of one batch's requests."""

    async def submit(self, batch_id: str, lines: Sequence[BatchRequest]) -> str:
        """Submit a batch and return the provider's id.

        `batch_id` is mnemon's id, by which `find` identifies the batch.
        """

    async def find(self, batch_id: str, lines: int, since: datetime) -> str | None:
        """Return the provider's id of a batch that may have been submitted; None if there is no such batch.

        Args:
            batch_id: mnemon's id of the batch; the ids of its lines begin with this id and `-`.
            lines: number of lines of the batch.
            since: the earliest time at which the batch may have been submitted.
        """

    async def load_progress(self, provider_batch_id: str) -> BatchProgress:
        """Ask the provider for the state of a batch."""

    def read_results(self, provider_batch_id: str) -> AsyncIterator[BatchResult]:
        """Yield the results of an ended batch, in any order. Lines without a readable id are left out."""

    async def cancel(self, provider_batch_id: str) -> None:
        """Cancel a batch, unless it has ended or is unknown."""


class LanguageModel(Protocol):
    """A model of a provider. Its errors and logs never contain the key, the request or the answer.

    Attributes:
        provider: the provider's name, such as `openai`.
        model: the provider's name of the model.
        batches: the provider's batches; None if the provider does not support batches.
        thinking_tokens: tokens for thoughts that requests allow in addition to their `most_tokens`; 0 for a
            model that does not think, or whose capabilities are not known yet.
    """

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def batches(self) -> BatchApi | None: ...

    @property
    def thinking_tokens(self) -> int: ...

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Send a request and wait for the answer.

        Raises:
            ModelUnavailable: the provider gives no usable answer; a later attempt may succeed.
            ModelBusy: the provider is overloaded; a later attempt may succeed.
            ModelRefused: the provider refuses the key, the model or the kind of request.
            RequestRefused: the provider will never take this request.
        """


class ModelUnavailable(Exception):
    """The provider gives no usable answer now, or is overloaded; a later attempt may succeed.

    `retry_after` is the number of seconds to wait; None if the provider does not give it.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelBusy(ModelUnavailable):
    """The provider is overloaded, by this client or by all its clients, and refuses further requests."""


class ModelRefused(ModelUnavailable):
    """The provider refuses the key, the model or the kind of request until the cause is corrected."""


class RequestRefused(Exception):
    """The provider will never take this request, for example for its length; other requests may succeed.

    Attributes:
        error: the provider's description; `explain` adds it without the request's content.
        usage: tokens of the test request that showed that this request is the reason; None if none was sent.
    """

    def __init__(self, message: str, error: ProviderError = UNEXPLAINED, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.usage = usage

    async def explain(
        self,
        request: ModelRequest,
        send_test: Callable[[ModelRequest], Awaitable[ModelAnswer]],
        model: str,
        *,
        reports_test_error: bool = True,
    ) -> "RequestRefused | ModelRefused":
        """Return the error to raise for a refused request, after a test request with minimal text.

        Some providers report a bad key or a reached spending limit in the same way as a refused text.

        Args:
            request: the refused request.
            send_test: sends the request with minimal text.
            model: the provider's name of the model.
            reports_test_error: True to quote the error of the refused test request, False to quote that of
                the original request.

        Returns:
            `ModelRefused` if the test is refused too. Otherwise this refusal with the provider's description,
            from which the request's content is removed.

        Raises:
            ModelUnavailable: the provider gives no usable answer to the test.
        """
        try:
            usage = (await send_test(replace(request, text="."))).usage
        except RequestRefused as error:
            return ModelRefused(
                f"{error if reports_test_error else self}. A test request with minimal text was refused too: "
                f"check the API key, the account at the provider, and the account's access to {model}"
            )
        said = self.error.describe(request.instructions, request.text)
        return RequestRefused(f"{self}: {said}" if said else str(self), self.error, usage)


class ModelNotConfigured(Exception):
    """A package or a key is missing, the key cannot be sent, or the provider `offline` has no such model.

    The message names the next step.
    """
