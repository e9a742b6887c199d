"""Faults of a provider that a test can set."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, TypeVar

Damage = Literal["cut", "nameless", "hollow", "failed", "left out", "twice"]
"""Damage to a line of a batch's results.

- `cut`: the line ends in the middle.
- `nameless`: the line is not JSON, so it has no id.
- `hollow`: the line has an id but no answer.
- `failed`: the line has an error in place of an answer.
- `left out`: the line is missing.
- `twice`: the line appears twice; only OpenAI's format applies it.
"""

Body = dict[str, Any]

LineOrder = Literal["as asked", "reversed", "shuffled"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HttpFault:
    """Fault in the response to one HTTP request.

    Attributes:
        status: HTTP status of an error that replaces the work of the request; 200 means no error. With an
            error, `seconds`, `is_half` and `is_dropped` have no effect.
        retry_after: value of the header `Retry-After` of an error, in seconds.
        seconds: delay of the response; the server does its work before the delay.
        is_half: whether only the first half of the body is sent, with the length of this half.
        is_dropped: whether the connection ends in the middle of the body.
        body: body that replaces the body of the response; the work is done unless `status` is an error. With
            `is_half`, it has no effect.
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
    """Faults of the provider. Default: no faults.

    Attributes:
        requests: faults of the next requests, in order; each fault applies to the first request that matches
            the fault's `path`.
        is_cut: function that tells whether the answer to a text is cut in the middle, as at the limit of
            tokens.
        rewrite: function that changes the body of the answer to a text, unless it is streamed, in OpenAI's
            format.
        refused: function that returns the status and the error, in OpenAI's format, with which a batch
            refuses the line of a text; None if the batch accepts the line.
        damage: function that returns the damage to the line of a text in the results of a batch; None for no
            damage.
        results: `whole`: a file of results is complete. `half`: it ends after its first half. `dropped`: the
            connection ends in the middle of the file.
        order: order of the lines in the results of a batch.
        ending: state in which batches end.
        done_share: share of the lines that are done when a batch expires or is cancelled.
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

    def take_fault(self, path: str) -> HttpFault | None:
        """Remove and return the first fault that applies to a request; None if no fault applies.

        `path` is the method and path of the request, such as `GET /v1/models`.
        """
        for fault in self.requests:
            if fault.path in path:
                self.requests.remove(fault)
                return fault
        return None


def damage_line(line: str, damage: Damage | None) -> str:
    """Return a line of results with the damage `cut` or `nameless`; other damage leaves the line as it is."""
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
