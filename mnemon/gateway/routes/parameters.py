"""Parameters that several routes have."""

from typing import Annotated

from fastapi import Depends, Path

from mnemon.gateway.memory_access import MemoryAccess, get_memory

User = Annotated[str, Path(description="Id of the user, percent-encoded.", min_length=1, max_length=255)]
Memory = Annotated[MemoryAccess, Depends(get_memory)]
