"""What can be wrong with a provider, as a test says."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, TypeVar

Damage = Literal["cut", "nameless", "hollow", "failed", "left out", "twice"]
"""Of a line of results: it ends in the middle; is no JSON and has no id; has an id and no answer; has an
error in place of an answer; is not there; is there two times."""

Body = dict[str, Any]

LineOrder = Literal["as asked", "reversed", "shuffled"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HttpFault:
    """What is wrong with the answer to one HTTP request.

    Attributes:
        status: instead of what was asked for, which is not done; 200: nothing is wrong with it.
        retry_after: seconds, as the header says them.
        seconds: that the answer is late; what was asked for has been done before.
        is_half: half of the answer's body is all there is.
        is_dropped: the connection ends in the middle of the body.
        body: instead of the answer's. What was asked for is done unless the status says otherwise.
        path: only requests whose method and path, as in `GET /v1/models`, hold this have it.
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
    """What is wrong; nothing, until a test changes it.

    Attributes:
        requests: those of the next requests, in turn; each is used up by the first request that it is for.
        is_cut: by a request's text: its answer ends in the middle, for want of tokens.
        rewrite: what becomes of a model's answer, by the request's text: online and in a batch.
        refused: by a request's text: status and error of a line of a batch that is not taken.
        damage: by a request's text: what is wrong with its line of a batch's results.
        results: `half`: of a file of results half is there; `dropped`: the connection ends half-way.
        order: of the results.
        ending: how batches end.
        done_share: of the lines of a batch that expires or is cancelled, those that were done.
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
        """The fault that the next request to this path has, and no other after it."""
        for fault in self.requests:
            if fault.path in path:
                self.requests.remove(fault)
                return fault
        return None


def damaged(line: str, damage: Damage | None) -> str:
    """A line of a file of results; `hollow` and `failed` are the wire format's own matter."""
    match damage:
        case "cut":
            return line[: len(line) * 2 // 3]
        case "nameless":
            return "\ufffd{]"
        case _:
            return line


def ordered(items: Sequence[T], order: LineOrder) -> list[T]:
    """A list of them, in that order."""
    match order:
        case "as asked":
            return list(items)
        case "reversed":
            return list(items[::-1])
        case "shuffled":
            return Random(7).sample(items, len(items))
