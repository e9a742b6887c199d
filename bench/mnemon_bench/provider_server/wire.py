"""What a wire format is made of: routes, requests and responses."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mnemon_bench.provider_server.faults import Damage, damaged
from mnemon_bench.provider_server.state import ProviderState


class HttpRequest(NamedTuple):
    """What came.

    Attributes:
        names: what the groups of the route's pattern matched.
        query: of a parameter that stands there twice, the last one.
        headers: by their name in lower case.
        url: of this server, without a path; what a client is sent to.
    """

    method: str
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    url: str

    def json(self) -> dict[str, Any]:
        """The body.

        Raises:
            ValueError: it is no JSON object.
        """
        value = json.loads(self.body)
        if not isinstance(value, dict):
            raise ValueError("expected a JSON object")
        return value


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered; a body that is no bytes is sent as JSON.

    Attributes:
        is_dropped: the connection ends in the middle of the body.
    """

    body: object = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    is_dropped: bool = False


def refusal(status: int, message: str) -> Response:
    """An error as OpenAI, Anthropic and Google word it, each finding its own fields."""
    error = {"message": message, "type": "error", "code": status, "status": "ERROR"}
    return Response({"type": "error", "error": error}, status)


def results_file(state: ProviderState, lines: Iterable[tuple[Mapping[str, Any], Damage | None]]) -> Response:
    """A file of results, a JSON object a line, with what is wrong with the lines and with the file."""
    body = "".join(
        damaged(json.dumps(line, ensure_ascii=False), damage) + "\n" for line, damage in lines
    ).encode()
    if state.faults.results == "half":
        body = body[: len(body) // 2]
    headers = {"Content-Type": "application/octet-stream"}
    return Response(body, headers=headers, is_dropped=state.faults.results == "dropped")


class Route(NamedTuple):
    """A path of a wire format.

    Attributes:
        pattern: of the whole path; its named groups become `Request.names`.
        of_batches: it is not there where the server has no batches.
        refusal: how a bad key, a status of a fault, or a body that is none is worded.
    """

    method: str
    pattern: re.Pattern[str]
    answer: Callable[[ProviderState, HttpRequest], Response]
    of_batches: bool = False
    refusal: Callable[[int, str], Response] = refusal
