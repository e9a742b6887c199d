"""A refused secret appears in no reply, rejection, dead letter or log line."""

import asyncio
import json
import logging

import pytest

from mnemon_contracts.streams import DEAD
from mnemon_infra.broker.streams.log_reader import read_event_pages
from tests.support.pipelines.extraction import TIMEOUT, ExtractionHarness

SECRETS = {
    "Sunflower77": "His Wi-Fi password at home is Sunflower77",
    "солнышко": "Её пароль солнышко",
    "GB82 WEST": "IBAN для перевода GB82 WEST 1234 5698 7654 32",
}


async def dead_letters(vector_extraction: ExtractionHarness) -> list[tuple[dict[str, str], bytes]]:
    """Return headers and body of each dead letter, as stored."""
    stream_context = vector_extraction.connection.jetstream()
    stored = (await stream_context.stream_info(DEAD)).state.messages
    letters = [await stream_context.get_msg(DEAD, seq=seq) for seq in range(1, stored + 1)]
    return [(letter.headers or {}, letter.data or b"") for letter in letters]


async def logged(vector_extraction: ExtractionHarness, event: str) -> str:
    """Return the bodies of the events of a name, as text."""
    bodies = []
    async for page in read_event_pages(vector_extraction.connection, f"memory.*.*.{event}.v1", 0):
        bodies += [json.dumps(json.loads(delivery.body), ensure_ascii=False) for delivery in page]
    return "\n".join(bodies)


@pytest.mark.parametrize("secret", SECRETS)
async def test_a_saved_secret_is_in_no_reply_rejection_letter_or_log_line(
    secret: str,
    vector_extraction: ExtractionHarness,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    async with vector_extraction.running("persist", "dedupe", "retrieve"):
        reply = await vector_extraction.stock.ask("save", text=SECRETS[secret])
        (rejected,) = await vector_extraction.has(1, "fact.rejected")
    assert reply["rule"] == "secret"
    assert rejected["reason"] == "secret"
    printed = capsys.readouterr()
    told = [json.dumps(reply, ensure_ascii=False), await logged(vector_extraction, "fact.rejected")]
    assert secret not in "".join([*told, caplog.text, printed.out, printed.err])
    assert await dead_letters(vector_extraction) == []


@pytest.mark.long
@pytest.mark.parametrize("secret", SECRETS)
async def test_an_unusable_answer_with_a_secret_leaves_a_letter_without_it(
    secret: str,
    vector_extraction: ExtractionHarness,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    unusable = json.dumps({"note": f"Cannot list: {SECRETS[secret]}"})
    vector_extraction.server.state.answering = lambda _: unusable
    await vector_extraction.set(attempts=1)
    async with vector_extraction.running():
        await vector_extraction.stock.say("I like tea")
        (answer,) = await vector_extraction.has(1, "window.answered")
    assert answer["outcome"] == "dead"
    ((headers, body),) = await dead_letters(vector_extraction)
    letter = json.loads(body)
    assert headers["Mnemon-Reason"] == "unreadable"
    assert letter["answer"] is None
    assert letter["withheld"].startswith("The answer looks like ")
    printed = capsys.readouterr()
    kept = json.dumps(letter, ensure_ascii=False) + "".join(headers.values())
    assert secret not in "".join([kept, caplog.text, printed.out, printed.err])


async def test_a_model_that_proposes_a_secret_leaves_it_in_no_letter_and_no_rejection(
    vector_extraction: ExtractionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    facts = [{"text": text} for text in SECRETS.values()]
    vector_extraction.server.state.answering = lambda _: json.dumps({"facts": facts})
    async with vector_extraction.running("persist", "extract", "dedupe"):
        await vector_extraction.stock.say("I like tea")
        rejections = await vector_extraction.has(len(SECRETS), "fact.rejected")
    assert {each["reason"] for each in rejections} == {"secret"}
    assert await dead_letters(vector_extraction) == []
    told = await logged(vector_extraction, "fact.rejected") + caplog.text
    assert not any(secret in told for secret in SECRETS)


@pytest.mark.parametrize("secret", SECRETS)
async def test_an_invalid_proposal_with_a_secret_leaves_a_letter_that_only_names_its_place(
    secret: str, vector_extraction: ExtractionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = {"text": SECRETS[secret], "kind": "no such kind"}
    async with vector_extraction.running("persist"):
        seq = await vector_extraction.stock.publish("memory.acme.u1.fact.proposed.v1", body)
        async with asyncio.timeout(TIMEOUT):
            while not (letters := await dead_letters(vector_extraction)):
                await asyncio.sleep(0.05)
    ((headers, kept),) = letters
    assert headers["Mnemon-Reason"] == "invalid_body"
    assert headers["Mnemon-Sequence"] == str(seq)
    assert headers["Mnemon-Left-Out"] == "headers and body"
    assert kept == b""
    assert secret not in caplog.text + "".join(headers.values())


async def test_an_invalid_proposal_without_a_secret_is_kept_whole(
    vector_extraction: ExtractionHarness,
) -> None:
    body = {"text": "Changes the password every month", "kind": "no such kind"}
    async with vector_extraction.running("persist"):
        await vector_extraction.stock.publish("memory.acme.u1.fact.proposed.v1", body)
        async with asyncio.timeout(TIMEOUT):
            while not (letters := await dead_letters(vector_extraction)):
                await asyncio.sleep(0.05)
    ((_, kept),) = letters
    assert json.loads(kept) == body
