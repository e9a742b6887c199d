"""The face: the client for bots and the `mnemon` command."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from producers.client import MemoryClient

__all__ = ["MemoryClient"]


def __getattr__(name: str) -> Any:
    # On first use: the command shall not wait for the client, nor a server for either.
    if name == "MemoryClient":
        from producers.client import MemoryClient

        return MemoryClient
    raise AttributeError(f"module 'mnemon' has no attribute {name!r}")
