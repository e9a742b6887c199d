"""Latency of the HTTP gateway and of its proxy.

The gateway is compared with NATS and with a bare route, the proxy with its provider.
"""

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from nats.aio.client import Client

from mnemon_bench.baselines.http_echo import PATH
from mnemon_bench.measures.percentiles import compute_median_percentiles, compute_percentiles
from mnemon_bench.provider_server.process import run_provider, use_provider
from mnemon_bench.workers.http_client import HttpConnection
from mnemon_bench.workers.processes import spawn_consumers
from mnemon_bench.workloads.messages import USERS, fill_log, make_body
from mnemon_consumers.app import run_consumers
from mnemon_contracts.subjects import build_ask_subject, build_chat_subject
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.settings.api_keys import issue_key, open_api_keys

CALLERS: Final = (1, 16)
MESSAGES: Final = 2_000
PAUSE: Final = 0.1
"""Seconds between two requests of the chat, as while a person reads; mnemon stores the messages meanwhile."""

TARGETS: Final = {"proxy_added_first_token_ms_p50": 20.0}

_MODEL: Final = "a-model"
_TENANT: Final = "bench"

Send = Callable[[int, int], Awaitable[None]]
"""Function that sends a request; its arguments are the number of the caller and that of the request."""


async def run(
    deployment: Deployment,
    *,
    rounds: int = 5,
    requests: int = 400,
    chats: int = 60,
    report: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Measure publishes and `history` over HTTP, over NATS and on a bare route; then chats through the proxy.

    Requests over HTTP, over NATS and on the bare route are interleaved, and so are chats through the proxy
    and chats without it.

    `chats` is the number of chats through the proxy, and of chats without it.

    Returns:
        `ratios`: `<request>_to_<nats|route>_<callers>_<p50|p99>` is the time over HTTP divided by the time
        over NATS, or by the time of the bare route with the same body; `..._rate` is the ratio of requests
        per second.
        `proxy_added_first_token_ms_p50`: median time to the first token of the proxy minus that of the
        provider; `targets`: the limit of this difference. `first_token_ms`: p50 and p99 of the proxy
        and of the provider. `milliseconds` and `requests_per_second` by
        `<request>_<http|nats|route>_<callers>`. Times are in ms.

    Raises:
        RuntimeError: a request fails.
    """
    issued = issue_key(_TENANT)
    async with await connect_deployment(deployment, name="bench") as connection:
        await (await open_api_keys(connection)).add(issued.stored)
        await fill_log(connection, MESSAGES)
        async with run_consumers(["persist"], deployment):
            while await read_applied_position(connection.jetstream()) < MESSAGES:
                await asyncio.sleep(0.05)
        async with run_provider() as provider:
            provider_deployment = use_provider(deployment, provider).model_copy(
                update={"proxy_memory_seconds": 10.0, "vectors_folder": None}
            )
            async with (
                spawn_consumers(["persist", "retrieve"], provider_deployment),
                _spawn_http("mnemon.gateway", json.dumps(provider_deployment.to_json())) as gateway,
                _spawn_http("mnemon_bench.baselines.http_echo") as route,
            ):
                rates: dict[str, float] = {}
                times: dict[str, dict[str, float]] = {}
                for callers in CALLERS:
                    measured = await _measure_callers(
                        connection, gateway, route, issued.text, callers, rounds, requests
                    )
                    times |= compute_median_percentiles({name: each[1] for name, each in measured.items()})
                    rates |= {name: round(median(each[0]), 1) for name, each in measured.items()}
                    report(f"{callers} callers: done")
                first = await _measure_chats(gateway, urlsplit(provider).port or 0, issued.text, chats)
    added = round(first["proxy"]["p50"] - first["provider"]["p50"], 2)
    return {
        "ratios": _build_ratios(times, rates),
        "targets": {"at_most": TARGETS},
        "proxy_added_first_token_ms_p50": added,
        "first_token_ms": first,
        "milliseconds": times,
        "requests_per_second": rates,
    }


@asynccontextmanager
async def _spawn_http(module: str, options: str = "") -> AsyncIterator[int]:
    """Run a module with the file descriptor of a listening socket as its argument; yield the port.

    Args:
        module: the module, which serves the socket until it is terminated.
        options: the first line that the module reads from its standard input.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number = listening.fileno()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, str(number)), stdin=asyncio.subprocess.PIPE, pass_fds=(number,)
        )
        assert process.stdin is not None
        try:
            process.stdin.write(options.encode() + b"\n")
            yield listening.getsockname()[1]
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _measure_callers(
    connection: Client, gateway: int, route: int, key: str, callers: int, rounds: int, requests: int
) -> dict[str, tuple[list[float], list[tuple[float, float]]]]:
    """Return rates and percentiles of each kind of request, by `<request>_<way>_<callers>`."""
    async with AsyncExitStack() as stack:
        to_gateway = [_open_connection(stack, gateway) for _ in range(callers)]
        to_route = [_open_connection(stack, route) for _ in range(callers)]
        stream = connection.jetstream()

        async def publish_http(caller: int, number: int) -> None:
            path = f"/v1/users/u{number % USERS}/events/message"
            answer = await to_gateway[caller].post(path, _make_message(number), key)
            _require_success(answer.status == 201, answer.body)

        async def publish_nats(caller: int, number: int) -> None:
            subject = build_chat_subject(_TENANT, f"u{number % USERS}", None, "message")
            headers = {"Nats-Msg-Id": uuid4().hex}
            await stream.publish(subject, make_body(number), stream="LOG", headers=headers)

        async def publish_route(caller: int, number: int) -> None:
            await to_route[caller].post(PATH, _make_message(number))

        async def read_history_http(caller: int, number: int) -> None:
            answer = await to_gateway[caller].post(f"/v1/users/u{number % USERS}/history", {}, key)
            _require_success(answer.status == 200, answer.body)

        async def read_history_nats(caller: int, number: int) -> None:
            subject = build_ask_subject(_TENANT, f"u{number % USERS}", "history")
            reply = await connection.request(subject, b"{}", timeout=30)
            _require_success(b'"error"' not in reply.data[:100], reply.data)

        async def read_history_route(caller: int, number: int) -> None:
            await to_route[caller].post(PATH, {})

        sending: dict[str, Send] = {
            "publish_http": publish_http,
            "publish_nats": publish_nats,
            "publish_route": publish_route,
            "history_http": read_history_http,
            "history_nats": read_history_nats,
            "history_route": read_history_route,
        }
        measured: dict[str, tuple[list[float], list[tuple[float, float]]]] = {
            f"{name}_{callers}": ([], []) for name in sending
        }
        for round_ in range(rounds + 1):
            for name, send in sending.items():
                rate, taken = await _measure_requests(send, callers, requests)
                if round_:  # the first round starts processes and opens connections
                    measured[f"{name}_{callers}"][0].append(rate)
                    measured[f"{name}_{callers}"][1].append(taken)
        return measured


def _open_connection(stack: AsyncExitStack, port: int) -> HttpConnection:
    opened = HttpConnection(port)
    stack.push_async_callback(opened.close)
    return opened


async def _measure_requests(send: Send, callers: int, requests: int) -> tuple[float, tuple[float, float]]:
    """Return the requests per second, and the median and the 99th percentile of their times in ms."""
    taken: list[float] = []
    waiting = iter(range(requests))

    async def send_requests(caller: int) -> None:
        for number in waiting:
            begun = time.perf_counter()
            await send(caller, number)
            taken.append((time.perf_counter() - begun) * 1000)

    begun = time.perf_counter()
    await asyncio.gather(*(send_requests(caller) for caller in range(callers)))
    return requests / (time.perf_counter() - begun), compute_percentiles(taken)


async def _measure_chats(gateway: int, provider: int, key: str, chats: int) -> dict[str, dict[str, float]]:
    """Return p50 and p99 of the milliseconds to the first token of a chat, for `proxy` and `provider`."""
    ways = {"proxy": (gateway, "/openai/v1/chat/completions"), "provider": (provider, "/v1/chat/completions")}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    async with AsyncExitStack() as stack:
        connections = {name: _open_connection(stack, port) for name, (port, _) in ways.items()}
        messages: Sequence[dict[str, str]] = ()
        for number in range(chats + 5):
            question = {"role": "user", "content": f"{number}: what did I say about the weather?"}
            messages = [*messages[-20:], question]
            body = {"model": _MODEL, "messages": messages, "stream": True, "user": "u1"}
            for name, (_, path) in ways.items():
                answer = await connections[name].post(path, body, key)
                _require_success(answer.status == 200, answer.body)
                if number >= 5:
                    taken[name].append(answer.first)
            messages = [*messages, {"role": "assistant", "content": _read_text(answer.body)}]
            await asyncio.sleep(PAUSE)
    return compute_median_percentiles({name: [compute_percentiles(each)] for name, each in taken.items()})


def _read_text(stream: bytes) -> str:
    events = (line[6:] for line in stream.split(b"\n") if line.startswith(b"data: {"))
    return "".join(json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events)


def _make_message(number: int) -> Any:
    return json.loads(make_body(number))


def _require_success(holds: bool, answer: bytes) -> None:
    if not holds:
        raise RuntimeError(
            f"a request of the benchmark failed: {answer[:300].decode()}; correct the cause that the answer "
            "names, then run the bench again"
        )


def _build_ratios(times: dict[str, dict[str, float]], rates: dict[str, float]) -> dict[str, float]:
    found = {}
    for request in ("publish", "history"):
        for callers in CALLERS:
            http = f"{request}_http_{callers}"
            for way in ("nats", "route"):
                other, name = f"{request}_{way}_{callers}", f"{request}_to_{way}_{callers}"
                for percentile in ("p50", "p99"):
                    found[f"{name}_{percentile}"] = round(
                        times[http][percentile] / times[other][percentile], 2
                    )
                found[f"{name}_rate"] = round(rates[http] / rates[other], 3)
    return found
