"""Instructions that Google keeps for a while, so that they need not be paid for in full each time."""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from google.genai.types import CreateCachedContentConfig, UpdateCachedContentConfig

from mnemon_infra.models.language.google.endpoint import GoogleEndpoint
from mnemon_infra.models.language.port import ModelRefused, ModelUnavailable, RequestRefused

PAUSE = 60.0
"""Seconds until what failed is tried again."""

CLOSING = 5.0
"""Seconds that Google has for deleting; what is left ends by itself."""


class _Kept(NamedTuple):
    """What is known of some instructions.

    Attributes:
        name: of the cached content; None where there is none.
        until: before that there is nothing to do about it.
        ends: by then it is gone, or was not asked for again.
    """

    name: str | None
    until: float
    ends: float


class CachedInstructions:
    """Cached contents of one model. They cost something to create and to keep, so instructions that are asked
    for once in a lifetime are sent as they are; from the second time on they are cached.
    """

    def __init__(self, server: GoogleEndpoint, lifetime: float, clock: Callable[[], float]) -> None:
        self._server = server
        self._lifetime = lifetime
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._one_at_a_time = asyncio.Lock()

    async def name(self, instructions: str) -> str | None:
        """Of the cached content; None where they are to be sent."""
        kept = self._kept.get(instructions)
        if kept is None or self._clock() >= kept.until:
            async with self._one_at_a_time:
                kept = self._kept[instructions] = await self._seen_to(instructions)
        return kept.name

    def forget(self, instructions: str, name: str) -> None:
        """The server does not have it any more; the next to ask has another created."""
        kept = self._kept.get(instructions)
        if kept is not None and kept.name == name:  # nobody has seen to it meanwhile
            now = self._clock()
            self._kept[instructions] = _Kept(None, now, now + self._lifetime)

    async def close(self) -> None:
        """Delete them, as far as there is time."""
        names = [kept.name for kept in self._kept.values() if kept.name is not None]
        self._kept.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                for name in names:
                    with suppress(ModelUnavailable, RequestRefused):
                        delete = partial(self._server.client.caches.delete, name=name)
                        await self._server.ask(delete, tries=1)

    async def _seen_to(self, instructions: str) -> _Kept:
        now = self._clock()
        kept = self._kept.get(instructions)
        if kept is None or now >= kept.ends:
            return _Kept(None, now, now + self._lifetime)
        if now < kept.until:
            return kept
        later = now + PAUSE
        try:
            if kept.name is not None:
                return await self._prolonged(instructions, kept.name)
            return await self._created(instructions)
        except RequestRefused:  # too few tokens: they will not become more
            return _Kept(None, math.inf, math.inf)
        except ModelUnavailable:
            if kept.name is not None:
                return kept._replace(until=min(later, kept.ends))
            return _Kept(None, later, later + self._lifetime)

    async def _created(self, instructions: str) -> _Kept:
        now = self._clock()
        config = CreateCachedContentConfig(system_instruction=instructions, ttl=self._ttl)
        create = partial(self._server.client.caches.create, model=self._server.model, config=config)
        return self._living((await self._server.ask(create, tries=1)).name, now)

    async def _prolonged(self, instructions: str, name: str) -> _Kept:
        now = self._clock()
        config = UpdateCachedContentConfig(ttl=self._ttl)
        update = partial(self._server.client.caches.update, name=name, config=config)
        try:
            await self._server.ask(update, tries=1)
        except (ModelRefused, RequestRefused):  # it is gone
            return await self._created(instructions)
        return self._living(name, now)

    def _living(self, name: str | None, now: float) -> _Kept:
        """From half of its life on it is renewed; near its end it is not relied upon."""
        return _Kept(name, now + self._lifetime / 2, now + self._lifetime * 0.9)

    @property
    def _ttl(self) -> str:
        return f"{self._lifetime:g}s"
