"""Parameters that several routes have."""

from typing import Annotated

from fastapi import Depends, Path, Query

from mnemon.gateway.memory_access import MemoryAccess, get_memory

User = Annotated[str, Path(description="Id of the user, percent-encoded.", min_length=1, max_length=255)]
Conversation = Annotated[
    str | None,
    Query(
        min_length=1, max_length=255, description="Id of the conversation. Default: the current conversation."
    ),
]
Memory = Annotated[MemoryAccess, Depends(get_memory)]
