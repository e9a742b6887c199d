"""State of the server: received requests, cached beginnings of requests, and batches."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from mnemon_bench.provider_server.answers import ReceivedRequest, write_answer
from mnemon_bench.provider_server.faults import Damage, ProviderFaults, order_items

MIN_CACHED_CHARACTERS = 1024
"""Minimum length of a request's beginning that is cached, in characters."""


class CountedTokens(NamedTuple):
    """Numbers of tokens of one request or of many.

    Attributes:
        input: tokens of the requests, including `cached` and `written`.
        cached: input tokens that were read from the provider's cache.
        written: input tokens that were written to the provider's cache.
        output: tokens of the answers.
    """

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0


class GeneratedAnswer(NamedTuple):
    """Answer of the model to a request; `is_cut` tells whether the text was cut off before its end."""

    text: str
    tokens: CountedTokens
    is_cut: bool


class AnsweredLine(NamedTuple):
    """A line of a batch with its answer; `damage` is the damage to the line in the results, or None."""

    line_id: str
    answered: GeneratedAnswer
    damage: Damage | None


class BatchLine(NamedTuple):
    """A request in a batch, with the id that the client gave it."""

    line_id: str
    question: ReceivedRequest


@dataclass
class ProviderBatch:
    """A batch of requests that a client has created.

    Attributes:
        format: the wire format of the request that created the batch.
        given: fields that the wire format stores with the batch, such as names and metadata.
        created_at: time of the creation, in seconds since 1970; a test may change it.
        polls: number of further polls that find the batch running.
        done: number of lines with an answer, counted from the first line.
        results: lines of the results; None until a response needs them. Later faults do not change them.
    """

    id: str
    format: str
    lines: Sequence[BatchLine]
    given: Mapping[str, Any]
    created_at: float
    polls: int
    state: Literal["running", "ended", "expired", "failed", "cancelled"] = "running"
    done: int = 0
    results: Sequence[AnsweredLine] | None = None


@dataclass
class ProviderState:
    """State of the server. Several threads may call its methods at the same time.

    Attributes:
        key: the correct key; None accepts any.
        seconds: seconds that the model takes to answer a request outside of batches.
        polls: number of polls that find a batch running; the next poll ends the batch.
        has_batches: if false, the paths of batches do not exist, as with Ollama.
        formats: formats of answers that a request may ask for.
        unsupported: parameters that OpenAI's wire format refuses.
        longest: maximum length of a text that the model accepts, in characters; None: no limit.
        answering: function of the model, which returns the text of an answer.
        requests: method and path of each request to a known path with the correct key, in order of arrival.
        questions: all requests that were answered.
        asked: number of paid requests by text. The lines of a batch count from its creation on; lines without
            an answer at the end of the batch no longer count.
        used: tokens of all requests and answers.
        in_flight: requests that wait for their answer.
        most_in_flight: maximum length that `in_flight` has had.
    """

    key: str | None = None
    seconds: float = 0
    polls: int = 2
    has_batches: bool = True
    formats: frozenset[str] = frozenset({"json_schema", "json_object"})
    unsupported: frozenset[str] = frozenset()
    longest: int | None = None
    answering: Callable[[ReceivedRequest], str] = write_answer
    faults: ProviderFaults = field(default_factory=ProviderFaults)
    requests: list[str] = field(default_factory=list)
    questions: list[ReceivedRequest] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    used: CountedTokens = field(default_factory=CountedTokens)
    in_flight: list[ReceivedRequest] = field(default_factory=list)
    most_in_flight: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _batches: dict[str, ProviderBatch] = field(default_factory=dict)
    _beginnings: set[tuple[str, str]] = field(default_factory=set)
    _holds: list[tuple[Callable[[ReceivedRequest], bool], threading.Event]] = field(default_factory=list)

    def hold_answers(
        self, is_held: Callable[[ReceivedRequest], bool] = lambda question: True
    ) -> threading.Event:
        """Delay the answers to some requests until the returned event is set or the server closes.

        Args:
            is_held: whether the answer to a request waits for the event. Default: all answers wait.
        """
        released = threading.Event()
        with self.lock:
            self._holds.append((is_held, released))
        return released

    def close(self) -> None:
        """Send delayed and held answers at once."""
        self.closing.set()
        with self.lock:
            for _, released in self._holds:
                released.set()

    def ask(self, question: ReceivedRequest) -> GeneratedAnswer:
        """Answer a request after the time that the model takes, once all holds on the request are released.

        Raises:
            ValueError: the text is longer than `longest`.
        """
        if self._is_too_long(question):
            raise ValueError(
                f"the text is too long: it has more than {self.longest} characters; send a shorter text"
            )
        with self.lock:
            self.in_flight.append(question)
            self.most_in_flight = max(self.most_in_flight, len(self.in_flight))
            holds = [released for is_held, released in self._holds if is_held(question)]
        self.closing.wait(self.seconds)
        for released in holds:
            released.wait()
        with self.lock:
            self.in_flight.remove(question)
            self.asked[question.text] += 1
            return self._answer_question(question)

    def create_batch(self, wire: str, lines: Iterable[BatchLine], given: Mapping[str, Any]) -> ProviderBatch:
        """Create a running batch in the wire format `wire`, and store the fields `given` with it."""
        with self.lock:
            batch = ProviderBatch(
                f"batch_{uuid4().hex}", wire, tuple(lines), given, time.time(), polls=self.polls
            )
            self.asked.update(line.question.text for line in batch.lines)
            self._batches[batch.id] = batch
            return batch

    def find_batch(self, batch_id: str, wire: str) -> ProviderBatch | None:
        """Return a batch of a wire format by its id; None if there is none."""
        with self.lock:
            batch = self._batches.get(batch_id)
            return batch if batch is not None and batch.format == wire else None

    def delete_batches(self) -> None:
        """Delete all batches, as if another account's key were used from now on."""
        with self.lock:
            self._batches.clear()

    def list_batches(self, wire: str | None = None) -> list[ProviderBatch]:
        """Return the batches of the wire format `wire` (None: of all wire formats), newest first."""
        with self.lock:
            return [batch for batch in reversed(self._batches.values()) if wire in (None, batch.format)]

    def poll_batch(self, batch: ProviderBatch) -> None:
        """Count a poll of a running batch; end the batch if it has no polls left."""
        with self.lock:
            if batch.state != "running":
                return
            if batch.polls > 0:
                batch.polls -= 1
                return
            self._end_batch(batch, self.faults.ending)

    def cancel_batch(self, batch: ProviderBatch) -> None:
        """Cancel a running batch; `faults.done_share` of its lines have an answer."""
        with self.lock:
            if batch.state == "running":
                self._end_batch(batch, "cancelled")

    def list_results(self, batch: ProviderBatch) -> Sequence[AnsweredLine]:
        """Return the lines of a batch that have an answer, except those with the damage `left out`.

        Every call returns the same lines.
        """
        with self.lock:
            if batch.results is None:
                done = [
                    AnsweredLine(line_id, self._answer_question(question), self._choose_damage(question))
                    for line_id, question in batch.lines[: batch.done]
                ]
                listed = [line for line in done if line.damage != "left out"]
                batch.results = order_items(listed, self.faults.order)
            return batch.results

    def _choose_damage(self, question: ReceivedRequest) -> Damage | None:
        return "failed" if self._is_too_long(question) else self.faults.damage(question.text)

    def _is_too_long(self, question: ReceivedRequest) -> bool:
        return self.longest is not None and len(question.text) > self.longest

    def _end_batch(
        self, batch: ProviderBatch, state: Literal["ended", "expired", "failed", "cancelled"]
    ) -> None:
        shares = {"ended": 1.0, "failed": 0.0}
        batch.state = state
        batch.done = int(len(batch.lines) * shares.get(state, self.faults.done_share))
        self.asked.subtract(line.question.text for line in batch.lines[batch.done :])

    def _answer_question(self, question: ReceivedRequest) -> GeneratedAnswer:
        text = self.answering(question)
        is_cut = self.faults.is_cut(question.text)
        text = text[: len(text) // 2] if is_cut else text
        tokens = self._count_tokens(question, text)
        self.questions.append(question)
        self.used = CountedTokens(*(sum(pair) for pair in zip(self.used, tokens, strict=True)))
        return GeneratedAnswer(text, tokens, is_cut)

    def _count_tokens(self, question: ReceivedRequest, text: str) -> CountedTokens:
        """Return the tokens of a request and its answer, one per word."""
        cached = written = 0
        if len(question.beginning) >= MIN_CACHED_CHARACTERS:
            beginning = (question.model, question.beginning)
            words = len(question.beginning.split())
            cached, written = (words, 0) if beginning in self._beginnings else (0, words)
            self._beginnings.add(beginning)
        words_in = len(question.instructions.split()) + len(question.text.split())
        return CountedTokens(words_in, cached, written, len(text.split()))
