"""Prefix cache: instructions that Google keeps for some minutes.

Kept instructions cost less than instructions that are sent with each request.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from google.genai.types import CreateCachedContentConfig, UpdateCachedContentConfig

from mnemon_infra.models.language.google.endpoint import GoogleEndpoint
from mnemon_infra.models.language.port import ModelRefused, ModelUnavailable, RequestRefused

PAUSE = 60.0
"""Seconds before a failed operation is tried again."""

UNCACHED_LIFETIME = 86_400.0
"""Seconds for which instructions that are too short to cache are remembered."""

CLOSING = 5.0
"""Maximum seconds for deletions when the model is closed; the remaining contents expire."""


class _CacheState(NamedTuple):
    """State of instructions in the cache. Times are in seconds of the clock of `CachedInstructions`.

    Attributes:
        name: name of the cached content; None if nothing is cached.
        until: the time after which the next request creates or prolongs the content.
        ends: the time after which the state is invalid and may be forgotten: the content has expired, or
            the instructions were used only once and count as new.
    """

    name: str | None
    until: float
    ends: float


class CachedInstructions:
    """Instructions that Google caches for one model.

    Cached contents cost money to create and to keep, so instructions are cached only when they are sent a
    second time within one lifetime.
    """

    def __init__(self, server: GoogleEndpoint, lifetime: float, clock: Callable[[], float]) -> None:
        self._server = server
        self._lifetime = lifetime
        self._clock = clock
        self._kept: dict[str, _CacheState] = {}
        self._one_at_a_time = asyncio.Lock()

    async def find_content(self, instructions: str) -> str | None:
        """Return the name of the cached content with these instructions.

        Return None if the request has to send the instructions themselves.
        """
        kept = self._kept.get(instructions)
        if kept is None or self._clock() >= kept.until:
            async with self._one_at_a_time:
                kept = self._kept[instructions] = await self._renew(instructions)
        return kept.name

    def record_loss(self, instructions: str, name: str) -> None:
        """Record that Google no longer has the cached content `name`; the next request creates another."""
        kept = self._kept.get(instructions)
        if kept is not None and kept.name == name:  # not replaced meanwhile
            now = self._clock()
            self._kept[instructions] = _CacheState(None, now, now + self._lifetime)

    async def close(self) -> None:
        """Delete the cached contents within `CLOSING` seconds; contents that are left expire."""
        names = [kept.name for kept in self._kept.values() if kept.name is not None]
        self._kept.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                for name in names:
                    with suppress(ModelUnavailable, RequestRefused):
                        delete = partial(self._server.client.caches.delete, name=name)
                        await self._server.send_request(delete, tries=1)

    async def _renew(self, instructions: str) -> _CacheState:
        now = self._clock()
        self._kept = {each: state for each, state in self._kept.items() if now < state.ends}
        kept = self._kept.get(instructions)
        if kept is None:
            return _CacheState(None, now, now + self._lifetime)
        if now < kept.until:
            return kept
        later = now + PAUSE
        try:
            if kept.name is not None:
                return await self._prolong(instructions, kept.name)
            return await self._create(instructions)
        except RequestRefused:  # too few tokens to cache
            return _CacheState(None, now + UNCACHED_LIFETIME, now + UNCACHED_LIFETIME)
        except ModelUnavailable:
            if kept.name is not None:
                return kept._replace(until=min(later, kept.ends))
            return _CacheState(None, later, later + self._lifetime)

    async def _create(self, instructions: str) -> _CacheState:
        now = self._clock()
        config = CreateCachedContentConfig(system_instruction=instructions, ttl=self._ttl)
        create = partial(self._server.client.caches.create, model=self._server.model, config=config)
        return self._build_state((await self._server.send_request(create, tries=1)).name, now)

    async def _prolong(self, instructions: str, name: str) -> _CacheState:
        now = self._clock()
        config = UpdateCachedContentConfig(ttl=self._ttl)
        update = partial(self._server.client.caches.update, name=name, config=config)
        try:
            await self._server.send_request(update, tries=1)
        except (ModelRefused, RequestRefused):  # the content is gone
            return await self._create(instructions)
        return self._build_state(name, now)

    def _build_state(self, name: str | None, now: float) -> _CacheState:
        """Return the state of the cached content `name`, or of no content if `name` is None.

        A request prolongs the content after 50 % of its lifetime. The state is valid for 90 % of it.
        """
        return _CacheState(name, now + self._lifetime / 2, now + self._lifetime * 0.9)

    @property
    def _ttl(self) -> str:
        return f"{self._lifetime:g}s"
