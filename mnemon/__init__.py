"""The client for bots, and the `mnemon` command. The client's names are imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1, ToolCall
    from mnemon_producers.client import MemoryClient
    from mnemon_producers.errors import AskFailed, EventRejected, NotConnected, PublishFailed
    from mnemon_producers.events import ChatEvent
    from mnemon_producers.timeouts import Timeouts

__all__ = [
    "AskFailed",
    "ChatEvent",
    "ClearedV1",
    "EventRejected",
    "MemoryClient",
    "MessageV1",
    "NotConnected",
    "PublishFailed",
    "StartedV1",
    "Timeouts",
    "ToolCall",
]

_HOMES = {
    "mnemon_producers.client": ("MemoryClient",),
    "mnemon_producers.errors": ("AskFailed", "EventRejected", "NotConnected", "PublishFailed"),
    "mnemon_producers.events": ("ChatEvent",),
    "mnemon_producers.timeouts": ("Timeouts",),
    "mnemon_contracts.events.chat": ("ClearedV1", "MessageV1", "StartedV1", "ToolCall"),
}


if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        # Import on first use: the start of the command and of a server must not wait for the client.
        for module, names in _HOMES.items():
            if name in names:
                return getattr(import_module(module), name)
        raise AttributeError(f"module 'mnemon' has no attribute {name!r}")
