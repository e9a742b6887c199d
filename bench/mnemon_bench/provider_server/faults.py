"""Faults of a provider, which a test sets."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, TypeVar

Damage = Literal["cut", "nameless", "hollow", "failed", "left out", "twice"]
"""Damage to a line of results: `cut`: it ends in the middle; `nameless`: it is no JSON and has no id;
`hollow`: it has an id and no answer; `failed`: it has an error in place of an answer; `left out`: it is
missing; `twice`: it is there two times."""

Body = dict[str, Any]

LineOrder = Literal["as asked", "reversed", "shuffled"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HttpFault:
    """Fault of the answer to one HTTP request.

    Attributes:
        status: status to answer with instead of doing what was asked for; 200 is no fault.
        retry_after: value of the header `Retry-After`, in seconds.
        seconds: delay of the answer; the server does what was asked for before the delay.
        is_half: whether only half of the answer's body is sent, as if it were all.
        is_dropped: whether the connection ends in the middle of the body.
        body: body that replaces the answer's. The server does what was asked for unless `status` prevents it.
        path: the fault applies only to requests whose method and path, such as `GET /v1/models`, contain
            this text.
    """

    status: int = 200
    retry_after: float | None = None
    seconds: float = 0
    is_half: bool = False
    is_dropped: bool = False
    body: Body | bytes | None = None
    path: str = ""


@dataclass
class ProviderFaults:
    """Faults of the provider; none, until a test sets them.

    Attributes:
        requests: faults of the next requests, in order; the first request that a fault applies to uses it up.
        is_cut: by a request's text: whether its answer ends in the middle, for want of tokens.
        rewrite: by a request's text: changes the body of a model's answer, online and in a batch.
        refused: by a request's text: status and error of a line of a batch that is not accepted.
        damage: by a request's text: the damage to its line of a batch's results.
        results: `half`: half of a file of results is there; `dropped`: the connection ends half-way.
        order: order of the results.
        ending: how batches end.
        done_share: share of the lines that were done in a batch that expires or is cancelled.
    """

    requests: deque[HttpFault] = field(default_factory=deque)
    is_cut: Callable[[str], bool] = lambda _: False
    rewrite: Callable[[str, Body], Body] = lambda _, body: body
    refused: Callable[[str], tuple[int, Body] | None] = lambda _: None
    damage: Callable[[str], Damage | None] = lambda _: None
    results: Literal["whole", "half", "dropped"] = "whole"
    order: LineOrder = "as asked"
    ending: Literal["ended", "expired", "failed"] = "ended"
    done_share: float = 0.5

    def take(self, path: str) -> HttpFault | None:
        """Return and remove the first fault that applies to a request to this path; None if there is none."""
        for fault in self.requests:
            if fault.path in path:
                self.requests.remove(fault)
                return fault
        return None


def damage_line(line: str, damage: Damage | None) -> str:
    """Return a damaged line of a file of results; the wire format itself handles `hollow` and `failed`."""
    match damage:
        case "cut":
            return line[: len(line) * 2 // 3]
        case "nameless":
            return "\ufffd{]"
        case _:
            return line


def order_items(items: Sequence[T], order: LineOrder) -> list[T]:
    """Return the items as a list in the given order."""
    match order:
        case "as asked":
            return list(items)
        case "reversed":
            return list(items[::-1])
        case "shuffled":
            return Random(7).sample(items, len(items))
