"""A provider with faults: each window is answered once or given up with the cause; each call is counted."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mnemon_bench.provider_server.faults import Body, Damage, HttpFault
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.state import ProviderState
from mnemon_infra.config import Deployment
from mnemon_infra.models.language import circuit_breaker
from tests.support.pipelines.extraction import MODEL, TIMEOUT, ExtractionHarness
from tests.support.stock_client import Stock

pytestmark = pytest.mark.long

MISTREATED = "thing 0\n"
"""Text of the window for which the provider misbehaves."""

CHAT, BATCHES, FILES = "POST /v1/chat/completions", "POST /v1/batches", "POST /v1/files"


@dataclass(frozen=True)
class End:
    """Outcome of a window.

    Attributes:
        reason: reason of the dead letter; None if the window is answered.
        cause: a part of the dead letter's error.
        calls: number of counted calls.
    """

    reason: str | None = None
    cause: str = ""
    calls: int = 1


@dataclass(frozen=True)
class Misbehaviour:
    """A fault, which `prepare` sets in the provider, and the outcome of the window."""

    name: str
    prepare: Callable[[ProviderState], None]
    end: End = End()

    def __str__(self) -> str:
        return self.name


def choosing(**changes: Any) -> Callable[[Body], Body]:
    """Return a function that changes the choice of an answer: its fields, or the `content` of its message."""

    def change(body: Body) -> Body:
        choice = body["choices"][0] | {name: value for name, value in changes.items() if name != "content"}
        if "content" in changes:
            choice |= {"message": {**choice["message"], "content": changes["content"]}}
        return {**body, "choices": [choice]}

    return change


def using(usage: Any) -> Callable[[Body], Body]:
    """Return a function that changes the token counts of an answer."""
    return lambda body: {**body, "usage": usage}


def failing(times: int, **fault: Any) -> Callable[[ProviderState], None]:
    return lambda state: state.faults.requests.extend([HttpFault(**{"path": CHAT, **fault})] * times)


def refusing_lines(status: int, **error: Any) -> Callable[[ProviderState], None]:
    def prepare(state: ProviderState) -> None:
        refused = status, {"error": {"message": "I like thing 0", **error}}
        state.faults.refused = lambda text: refused if MISTREATED in text else None

    return prepare


def damaging(damage: Damage) -> Callable[[ProviderState], None]:
    def prepare(state: ProviderState) -> None:
        state.faults.damage = lambda text: damage if MISTREATED in text else None

    return prepare


def setting(**values: Any) -> Callable[[ProviderState], None]:
    """Return a function that sets attributes of the provider's state, or with `faults__` of its faults."""

    def prepare(state: ProviderState) -> None:
        for name, value in values.items():
            setattr(state.faults if "faults__" in name else state, name.removeprefix("faults__"), value)

    return prepare


def both(*prepared: Callable[[ProviderState], None]) -> Callable[[ProviderState], None]:
    def prepare(state: ProviderState) -> None:
        for each in prepared:
            each(state)

    return prepare


def unusable(cause: str) -> End:
    """Return the outcome of an unusable answer: a second request, then a dead letter."""
    return End("unreadable", cause, calls=2)


ANSWERED = End()

ANSWERS: dict[str, tuple[Callable[[Body], Body], End]] = {
    "no choices": (lambda body: {**body, "choices": []}, unusable("no message")),
    "choices null": (lambda body: {**body, "choices": None}, unusable("no message")),
    "choices missing": (lambda body: {"usage": body["usage"]}, unusable("no message")),
    "message null": (choosing(message=None), unusable("no message")),
    "message a text": (choosing(message="tea"), unusable("no message")),
    "content null": (choosing(content=None), unusable("no text")),
    "content a number": (choosing(content=7), unusable("no text")),
    "content a list": (choosing(content=[{"type": "text"}]), unusable("no text")),
    "content empty": (choosing(content=""), unusable("no text")),
    "tool calls only": (choosing(message={"tool_calls": [{}]}), unusable("no text")),
    "refusal": (
        choosing(message={"content": None, "refusal": "No."}),
        End("refused", "the model refuses to answer", calls=2),
    ),
    "content filter": (
        choosing(content="", finish_reason="content_filter"),
        End("refused", "a filter of the provider refuses to answer", calls=2),
    ),
    "prose": (choosing(content="They like tea, I think."), unusable("no list of facts")),
    "facts of another form": (choosing(content='{"facts": "tea"}'), unusable("no list of facts")),
    "huge": (choosing(content="tea " * 50_000), unusable("200,000 characters")),
    "deep": (choosing(content="[" * 90_000), unusable("no list of facts")),
    "cut each time": (choosing(content="", finish_reason="length"), unusable("no list of facts")),
    "unknown finish reason": (choosing(finish_reason="whatever"), ANSWERED),
    "finish reason missing": (choosing(finish_reason=None), ANSWERED),
    "usage missing": (using(None), ANSWERED),
    "usage a text": (using("12"), ANSWERED),
    "usage negative": (using({"prompt_tokens": -5, "completion_tokens": -1}), ANSWERED),
    "usage of wrong types": (using({"prompt_tokens": "a", "completion_tokens": []}), ANSWERED),
    "usage beyond belief": (using({"prompt_tokens": 10**40, "completion_tokens": 1e300}), ANSWERED),
    "more cached than asked": (
        using({"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}}),
        ANSWERED,
    ),
}

REFUSED_TEXT = {
    "error": {"message": "Invalid content: I like thing 0", "code": "invalid_prompt", "param": "messages"}
}
SAID = "code invalid_prompt, param messages: Invalid content: ..."

ONLINE = [
    Misbehaviour("400 for a parameter", setting(unsupported=frozenset({"max_tokens"}))),
    Misbehaviour("400 for the schema", setting(formats=frozenset())),
    Misbehaviour(
        "400 for the text", failing(3, status=400, body=REFUSED_TEXT), End("refused", f"(HTTP 400): {SAID}")
    ),
    Misbehaviour(
        "422 for the text", failing(3, status=422, body=REFUSED_TEXT), End("refused", f"(HTTP 422): {SAID}")
    ),
    Misbehaviour("413", failing(1, status=413), End("refused", "HTTP 413")),
    Misbehaviour("401", failing(1, status=401)),
    Misbehaviour("403", failing(1, status=403)),
    Misbehaviour("404", failing(1, status=404)),
    Misbehaviour("405", failing(1, status=405)),
    Misbehaviour("408", failing(3, status=408)),
    Misbehaviour("429 with Retry-After", failing(3, status=429, retry_after=0.1)),
    Misbehaviour("429 without", failing(3, status=429)),
    Misbehaviour("429 unpaid", failing(3, status=429, body={"error": {"code": "insufficient_quota"}})),
    Misbehaviour("500", failing(3, status=500)),
    Misbehaviour("503", failing(3, status=503, retry_after=0.1)),
    Misbehaviour("529", failing(3, status=529)),
    Misbehaviour("the connection is cut", failing(3, is_dropped=True)),
    Misbehaviour("slow", failing(3, seconds=20)),
    Misbehaviour("a page", failing(1, body=b"<html>")),
    Misbehaviour("an empty body", failing(1, body=b"")),
    Misbehaviour("null", failing(1, body=b"null")),
    Misbehaviour("a list", failing(1, body=b"[]")),
    Misbehaviour("an error that is none", failing(1, body={"error": {"code": 502}})),
    Misbehaviour("broken JSON once", failing(1, body=b'{"choices": [}'), End(calls=2)),
    Misbehaviour("broken JSON", failing(9, body=b'{"choices": [}'), unusable("broken JSON")),
    Misbehaviour("half an answer", failing(9, is_half=True), unusable("broken JSON")),
]

BATCHED = [
    Misbehaviour("400 for a parameter", setting(unsupported=frozenset({"max_tokens"}))),
    Misbehaviour(
        "400 that names a parameter in words", refusing_lines(400, message="Unsupported: 'max_tokens'")
    ),
    Misbehaviour("400 for the text, not so online", refusing_lines(400)),
    Misbehaviour("400 for the text", both(
        refusing_lines(400), failing(3, status=400, body=REFUSED_TEXT)
    ), End("refused", f"(HTTP 400): {SAID}")),
    Misbehaviour("401 for a line", refusing_lines(401)),
    Misbehaviour("404 for a line", refusing_lines(404, code="model_not_found")),
    Misbehaviour("413 for a line", refusing_lines(413)),
    Misbehaviour("429 for a line", refusing_lines(429)),
    Misbehaviour("500 for a line", refusing_lines(500), End("no_answer", "HTTP 500", calls=0)),
    Misbehaviour("a line failed", damaging("failed"), End("no_answer", "HTTP 500", calls=0)),
    Misbehaviour("a line cut", damaging("cut"), End("no_answer", "broken", calls=0)),
    Misbehaviour("a line without a name", damaging("nameless"), End("no_answer", "have no line", calls=0)),
    Misbehaviour("a line without an answer", damaging("hollow"), End("no_answer", "broken", calls=0)),
    Misbehaviour("a line left out", damaging("left out"), End("no_answer", "have no line", calls=0)),
    Misbehaviour("a line twice", damaging("twice")),
    Misbehaviour("expired", setting(faults__ending="expired", faults__done_share=0.0)),
    Misbehaviour("failed", setting(faults__ending="failed")),
    Misbehaviour("shuffled", setting(faults__order="shuffled")),
    Misbehaviour("no batches", setting(has_batches=False)),
    Misbehaviour("the answer to a submission lost", failing(1, is_half=True, path=BATCHES)),
    Misbehaviour("a submission refused", failing(1, status=400, path=BATCHES)),
    Misbehaviour("an upload failed", failing(3, status=500, path=FILES)),
    Misbehaviour("an upload answered with a page", failing(1, body=b"<html>", path=FILES)),
    Misbehaviour("a progress failed", failing(3, status=503, path="GET /v1/batches/")),
    Misbehaviour("a progress with another form", failing(1, body={"status": 7}, path="GET /v1/batches/")),
    Misbehaviour("results cut", failing(3, is_dropped=True, path="GET /v1/files")),
    Misbehaviour("results failed", failing(3, status=500, path="GET /v1/files")),
]  # fmt: skip


@pytest.fixture
async def impatient_extraction(
    stock: Stock, deployment: Deployment, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> ExtractionHarness:
    monkeypatch.setattr(circuit_breaker, "REFUSAL_PAUSE", 0.1)
    monkeypatch.setattr(circuit_breaker, "PAUSES", (0.0, 0.1))
    monkeypatch.setattr("mnemon_consumers.extract.batch.lifecycle.LONGEST_PAUSE", 0.5)
    provider.state.polls = 0
    extracting = ExtractionHarness.on(stock, deployment.model_copy(update={"model_timeout": 5.0}), provider)
    await extracting.set(provider="openai", model=MODEL, idle_seconds=1.0, pool_seconds=0, attempts=2)
    return extracting


async def ended(impatient_extraction: ExtractionHarness, windows: int) -> None:
    """Wait until the given number of windows is answered or given up; failed windows are due at once."""
    async with asyncio.timeout(2 * TIMEOUT):
        while len(await impatient_extraction.log_of("window.answered")) < windows:
            await impatient_extraction.time_passes()
            await asyncio.sleep(0.1)


async def check(impatient_extraction: ExtractionHarness, ends: dict[str, End], told: str) -> None:
    """Check that each user has had one window, with the given outcome."""
    answers = await impatient_extraction.log_of("window.answered")
    assert sorted(each["owner"][1] for each in answers) == sorted(ends)
    assert {each["owner"][1]: each["outcome"] for each in answers} == {
        user: "dead" if end.reason else "proposed" for user, end in ends.items()
    }
    calls = await impatient_extraction.log_of("model.called")
    counted = Counter(each["owner"][1] for each in calls)
    assert {user: counted[user] for user in ends} == {user: end.calls for user, end in ends.items()}
    for tokens in (each["tokens"] for each in calls):
        assert 0 <= tokens["cached"] <= tokens["input"] <= 10**9
        assert 0 <= tokens["output"] <= 10**9
    letters = await impatient_extraction.letters()
    dead = {letter["user"]: headers for headers, letter in letters}
    assert len(dead) == len(letters)
    assert {user: headers["Mnemon-Reason"] for user, headers in dead.items()} == {
        user: end.reason for user, end in ends.items() if end.reason
    }
    assert all(ends[user].cause in headers["Mnemon-Error"] for user, headers in dead.items())
    assert "I like" not in json.dumps(letters)
    assert "I like" not in told


@pytest.mark.parametrize("mode", ["online", "batch"])
async def test_misbehaving_answers_end_each_window_once(
    mode: str, impatient_extraction: ExtractionHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {f"thing {number}\n": change for number, (change, _) in enumerate(ANSWERS.values())}

    def rewrite(text: str, body: Body) -> Body:
        return next(change for mark, change in changes.items() if mark in text)(body)

    impatient_extraction.server.state.faults.rewrite = rewrite
    async with impatient_extraction.running():
        await impatient_extraction.cut_of(len(ANSWERS))
        await impatient_extraction.set(mode=mode)
        await ended(impatient_extraction, len(ANSWERS))
    told = capsys.readouterr()
    ends = {f"u{number}": end for number, (_, end) in enumerate(ANSWERS.values())}
    await check(impatient_extraction, ends, told.out + told.err)


@pytest.mark.parametrize("case", ONLINE, ids=str)
async def test_misbehaving_provider_online_answers_each_window_once(
    case: Misbehaviour, impatient_extraction: ExtractionHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    await impatient_extraction.set(mode="online")
    case.prepare(impatient_extraction.server.state)
    async with impatient_extraction.running():
        await impatient_extraction.stock.say("I like thing 0", "acme.u0.-")
        await ended(impatient_extraction, 1)
    told = capsys.readouterr()
    await check(impatient_extraction, {"u0": case.end}, told.out + told.err)


@pytest.mark.parametrize("case", BATCHED, ids=str)
async def test_misbehaving_provider_in_batches_answers_each_window_once(
    case: Misbehaviour, impatient_extraction: ExtractionHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    async with impatient_extraction.running():
        await impatient_extraction.cut_of(3)
        case.prepare(impatient_extraction.server.state)
        await ended(impatient_extraction, 3)
    told = capsys.readouterr()
    await check(impatient_extraction, {"u0": case.end, "u1": End(), "u2": End()}, told.out + told.err)
