"""Parts of a wire format: routes, requests and responses."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mnemon_bench.provider_server.faults import Damage, damage_line
from mnemon_bench.provider_server.state import ProviderState


class HttpRequest(NamedTuple):
    """A request that the server has received.

    Attributes:
        names: values of the named groups of the route's pattern.
        query: query parameters; a parameter that appears twice has its last value.
        headers: headers by name in lower case.
        url: address of this server, without a path, for links that a client follows.
    """

    method: str
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    url: str

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object.

        Raises:
            ValueError: the body is not a JSON object.
        """
        value = json.loads(self.body)
        if not isinstance(value, dict):
            raise ValueError("the body must be a JSON object")
        return value


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response to a client. A body that is not bytes is sent as JSON.

    Attributes:
        is_dropped: whether the connection ends in the middle of the body.
    """

    body: object = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    is_dropped: bool = False


def build_refusal(status: int, message: str) -> HttpResponse:
    """Return an error in which clients of OpenAI, Anthropic and Google each find their own fields."""
    error = {"message": message, "type": "error", "code": status, "status": "ERROR"}
    return HttpResponse({"type": "error", "error": error}, status)


def build_results_file(
    state: ProviderState, lines: Iterable[tuple[Mapping[str, Any], Damage | None]]
) -> HttpResponse:
    """Return a file of results, one JSON object per line, with the fault `results` of the file.

    `lines` has each object with the damage to its line; None for no damage. See `damage_line`.
    """
    body = "".join(
        damage_line(json.dumps(line, ensure_ascii=False), damage) + "\n" for line, damage in lines
    ).encode()
    if state.faults.results == "half":
        body = body[: len(body) // 2]
    headers = {"Content-Type": "application/octet-stream"}
    return HttpResponse(body, headers=headers, is_dropped=state.faults.results == "dropped")


class Route(NamedTuple):
    """A path of a wire format.

    Attributes:
        pattern: pattern of the whole path; its named groups become `HttpRequest.names`.
        of_batches: whether the route exists only if the server has batches.
        refusal: function that returns the error response for a status and a message.
    """

    method: str
    pattern: re.Pattern[str]
    answer: Callable[[ProviderState, HttpRequest], HttpResponse]
    of_batches: bool = False
    refusal: Callable[[int, str], HttpResponse] = build_refusal
