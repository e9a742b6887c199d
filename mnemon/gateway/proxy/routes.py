"""Routes of the proxy: `/openai/v1` and `/anthropic/v1`, in the wire formats of these providers."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final
from urllib.parse import unquote

import httpx
import structlog
from fastapi import APIRouter, Request, Response
from nats.errors import Error as BrokerError

from mnemon.gateway.callers import Caller, Callers
from mnemon.gateway.memory_access import MemoryAccess
from mnemon.gateway.problems import Problem
from mnemon.gateway.proxy.anthropic_format import AnthropicFormat
from mnemon.gateway.proxy.callers import ClientKeys, ProxyCallers, find_keys
from mnemon.gateway.proxy.messages import UNREADABLE, ChatMessage, list_shown_texts, require_text
from mnemon.gateway.proxy.openai_format import OpenAIFormat
from mnemon.gateway.proxy.placement import PlacedContext, split_context
from mnemon.gateway.proxy.recorder import ConversationRecorder, Thread
from mnemon.gateway.proxy.relay import TIMEOUTS, AnswerReader, Relay
from mnemon.gateway.proxy.upstreams import Upstream, Upstreams, select_request_headers
from mnemon.gateway.proxy.wire_format import RequestBody, WireFormat
from mnemon_contracts.base import InvalidBody, check_identifier
from mnemon_contracts.verbs.ask import MAX_PRECEDING, ContextReplyV1, ContextV1
from mnemon_producers.errors import AskFailed
from mnemon_producers.events import check_id

log = structlog.get_logger("proxy")

_PRECEDING_CHARACTERS: Final = 400
_CONNECTIONS: Final = httpx.Limits(max_connections=512, max_keepalive_connections=64, keepalive_expiry=60.0)
"""Connections to providers. They stay open longer than the library's 5 s: between two messages of a person, a
handshake with the provider would delay the first token."""


class Proxy:
    """Parts of the proxy that all requests of a process share: HTTP client, recorder and callers.

    The check of a key takes at most `memory_seconds` seconds, and so does the request for the context.
    """

    def __init__(
        self, callers: Callers, memory: MemoryAccess, upstreams: Upstreams, memory_seconds: float
    ) -> None:
        self.upstreams = upstreams
        # Cookies of a provider are for the client that got them, and the library would send them for all.
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        self.client = httpx.AsyncClient(timeout=TIMEOUTS, limits=_CONNECTIONS, cookies=no_cookies)
        self.recorder = ConversationRecorder(memory)
        self.callers = ProxyCallers(callers, memory_seconds)
        self._memory = memory
        self._memory_seconds = memory_seconds

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run until the end of the block; then wait for the recorder, and close the connections."""
        async with self.client, self.recorder.run():
            yield

    async def load_context(self, thread: Thread, messages: Sequence[ChatMessage]) -> PlacedContext:
        """Return the context for the user's last message; an empty one if the request fails or times out."""
        asked = max((at for at, each in enumerate(messages) if each.role == "user"), default=None)
        preceding = [
            each.text[:_PRECEDING_CHARACTERS]
            for each in messages[:asked]
            if each.text and each.role != "tool"
        ]
        try:
            async with asyncio.timeout(self._memory_seconds):
                request = ContextV1.create_strict(
                    format="xml",
                    query=messages[asked].text if asked is not None else None,
                    conversation=thread.conversation,
                    preceding=tuple(preceding[-MAX_PRECEDING:]) or None,
                )
                reply = await self._memory.get_questioner(thread.tenant).ask(
                    thread.user, "context", request, ContextReplyV1
                )
        except (AskFailed, InvalidBody, BrokerError, TimeoutError) as error:
            log.warning("request forwarded without memory", tenant=thread.tenant, error=type(error).__name__)
            return PlacedContext()
        return await asyncio.to_thread(lambda: split_context(reply, list_shown_texts(messages)))


def create_proxy_routes() -> APIRouter:
    """Return the routes; the providers document them, so they are not in the OpenAPI document."""
    router = APIRouter(include_in_schema=False)
    router.add_api_route("/openai/v1/chat/completions", _complete_openai, methods=["POST"])
    router.add_api_route("/openai/v1/models", _list_openai_models, methods=["GET"])
    router.add_api_route("/openai/v1/models/{model:path}", _list_openai_models, methods=["GET"])
    router.add_api_route("/anthropic/v1/messages", _complete_anthropic, methods=["POST"])
    router.add_api_route("/anthropic/v1/messages/count_tokens", _pass_anthropic_request, methods=["POST"])
    router.add_api_route("/anthropic/v1/models", _pass_anthropic_request, methods=["GET"])
    router.add_api_route("/anthropic/v1/models/{model:path}", _pass_anthropic_request, methods=["GET"])
    return router


async def _complete_openai(request: Request) -> Response:
    proxy = _get_proxy(request)
    return await _complete_chat(proxy, request, proxy.upstreams.openai, "/openai/v1", OpenAIFormat())


async def _complete_anthropic(request: Request) -> Response:
    proxy = _get_proxy(request)
    return await _complete_chat(proxy, request, proxy.upstreams.anthropic, "/anthropic", AnthropicFormat())


async def _list_openai_models(request: Request) -> Response:
    proxy = _get_proxy(request)
    return await _pass_request(proxy, request, proxy.upstreams.openai, "/openai/v1")


async def _pass_anthropic_request(request: Request) -> Response:
    proxy = _get_proxy(request)
    return await _pass_request(proxy, request, proxy.upstreams.anthropic, "/anthropic")


def _get_proxy(request: Request) -> Proxy:
    proxy: Proxy = request.app.state.proxy
    return proxy


async def _pass_request(proxy: Proxy, request: Request, upstream: Upstream, prefix: str) -> Response:
    """Pass on a request that needs no memory, such as that for the list of models."""
    keys = find_keys(request)
    caller = await proxy.callers.identify_caller(request, keys)
    with proxy.callers.open_request(caller) as ends:
        passed = _build_request(proxy, request, keys, upstream, prefix, await request.body())
        return Relay(proxy.client, passed, ends.pop_all())


async def _complete_chat(
    proxy: Proxy, request: Request, upstream: Upstream, prefix: str, wire_format: WireFormat
) -> Response:
    """Add the context to a request, pass it on, and record the conversation."""
    keys = find_keys(request)
    caller = await proxy.callers.identify_caller(request, keys)
    with proxy.callers.open_request(caller) as ends:
        content = await request.body()

        def build_request(sent: bytes) -> httpx.Request:
            return _build_request(proxy, request, keys, upstream, prefix, sent)

        try:
            body, messages = await asyncio.to_thread(_parse_body, wire_format, content)
        except UNREADABLE:  # the provider tells what is wrong
            return Relay(proxy.client, build_request(content), ends.pop_all())
        if caller is None:
            return Relay(proxy.client, build_request(content), ends.pop_all())
        thread = _identify_thread(request, caller, wire_format.find_user(body))
        context = await proxy.load_context(thread, messages)
        # After the context: a new message makes `retrieve` read the user's memory again.
        asked = proxy.recorder.record_request(thread, messages)
        if context.stable or context.found:
            with suppress(*UNREADABLE):
                content = json.dumps(wire_format.place_context(body, context), ensure_ascii=False).encode(
                    "utf-8", "surrogatepass"
                )
        return Relay(
            proxy.client,
            build_request(content),
            ends.pop_all(),
            AnswerReader(wire_format),
            lambda answer: proxy.recorder.record_answer(
                thread, wire_format.provider, messages, answer, asked
            ),
        )


def _parse_body(wire_format: WireFormat, content: bytes) -> tuple[RequestBody, Sequence[ChatMessage]]:
    """Parse the body of a request and its messages; a body of 8 MiB may have 200,000 messages."""
    body: RequestBody = json.loads(content)
    messages = wire_format.parse_messages(body)
    require_text(messages)
    return body, messages


def _identify_thread(request: Request, caller: Caller, named: str | None) -> Thread:
    """Return user and conversation of a request; `named` is the user that its body names.

    Raises:
        Problem: the request names no user, the key does not permit the user, or a header is not UTF-8.
        InvalidBody, InvalidId: the user or the conversation cannot be an id.
    """
    user = _read_id(request, "mnemon-user") or named or caller.user
    if not user:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "bad_request",
            "the request names no user: send the header `Mnemon-User`, or the field `user` of OpenAI's "
            "format, or `metadata.user_id` of Anthropic's",
            field="user",
        )
    check_id("user", check_identifier("user", user))
    caller.require_permission("read", user)
    caller.require_permission("write", user)
    conversation = _read_id(request, "mnemon-conversation")
    if conversation is not None:
        check_id("conversation", check_identifier("conversation", conversation))
    return Thread(caller.tenant, user, conversation)


def _read_id(request: Request, header: str) -> str | None:
    """Return the id in a header, in UTF-8 or percent-encoded; None if the header is absent or empty.

    Raises:
        Problem: the header is not UTF-8.
    """
    try:
        # Starlette decodes header bytes as Latin-1, whatever their encoding.
        given = request.headers.get(header, "").encode("latin-1").decode()
        return unquote(given, errors="strict") or None
    except UnicodeError as error:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "bad_request",
            f"the header {header} is not UTF-8: send the id in UTF-8 or percent-encoded",
            field=header,
        ) from error


def _build_request(
    proxy: Proxy, request: Request, keys: ClientKeys, upstream: Upstream, prefix: str, content: bytes
) -> httpx.Request:
    if {".", ".."} & set(request.scope["path"].split("/")):
        # A provider would read another path than the route did.
        raise Problem(
            HTTPStatus.NOT_FOUND,
            "not_found",
            "the path of the request has a segment `.` or `..`; send the path without such segments",
        )
    path = request.scope["raw_path"].decode("ascii").removeprefix(prefix)
    query = request.scope["query_string"].decode("ascii")
    headers = select_request_headers(request.headers, upstream, has_own_key=keys.has_own_key)
    try:
        return proxy.client.build_request(
            request.method,
            f"{upstream.url}{path}" + (f"?{query}" if query else ""),
            headers=httpx.Headers(headers, encoding="latin-1"),  # as they were read
            content=content or None,
        )
    except httpx.InvalidURL as error:
        raise Problem(
            HTTPStatus.REQUEST_URI_TOO_LONG,
            "bad_request",
            "the URL of the request is too long or invalid; shorten or correct its path or query",
        ) from error
