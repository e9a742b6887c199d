"""Answers, read from complete responses and from responses that are cut off, refused or unreadable."""

import json

import httpx
import pytest

from mnemon.gateway.proxy.answers import Answer
from mnemon.gateway.proxy.openai_format import OpenAIFormat
from mnemon.gateway.proxy.relay import AnswerReader

BODY = json.dumps({"id": "c1", "model": "m", "choices": [{"message": {"content": "A cello."}}]}).encode()


def read(response: httpx.Response, *data: bytes) -> Answer:
    reader = AnswerReader(OpenAIFormat())
    reader.read_headers(response)
    for each in data:
        reader.feed(each)
    return reader.build_answer()


def test_whole_response_has_an_answer() -> None:
    answer = read(httpx.Response(200), BODY[:20], BODY[20:])
    assert answer.message
    assert answer.message.text == "A cello."


@pytest.mark.parametrize(
    ("response", "data"),
    [
        (httpx.Response(200), BODY[:-5]),
        (httpx.Response(200), b"[]"),
        (httpx.Response(429), BODY),
        (httpx.Response(200, headers={"content-encoding": "br"}, stream=httpx.ByteStream(b"")), BODY),
        (httpx.Response(200, headers={"content-type": "text/event-stream"}), b'data: {"choices": [1]}\n\n'),
    ],
    ids=["half", "another form", "refusal", "compressed", "stream of another form"],
)
def test_unreadable_response_has_no_answer(response: httpx.Response, data: bytes) -> None:
    assert read(response, data) == Answer()
