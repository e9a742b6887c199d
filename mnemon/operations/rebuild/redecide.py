"""Redecide: decisions of `dedupe` taken again on the facts of all users, one user after another."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nats.aio.client import Client

from mnemon_consumers.dedupe.redecide.corrections import Correction
from mnemon_consumers.dedupe.redecide.run import Redecider
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import Document, resolve_settings
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.fact_repository import count_fact_owners, list_fact_owners
from mnemon_infra.models.embedding import Embedder
from mnemon_infra.settings.store import read_documents

MAX_FIRST: Final = 20
"""Maximum number of corrections that an outcome names."""


class UserCorrection(NamedTuple):
    """The correction of a fact, and the owner of the fact."""

    owner: Owner
    change: Correction


@dataclass(slots=True)
class RedecideOutcome:
    """Corrections of a redecide, made or previewed.

    Attributes:
        users: number of users who are done, including those in `left`.
        changed: number of users with corrections.
        counts: number of corrections, by kind.
        first: the first corrections, `MAX_FIRST` at most.
        left: users whose facts cannot be redecided and stay unchanged, with the reason.
    """

    users: int = 0
    changed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    first: list[UserCorrection] = field(default_factory=list)
    left: list[tuple[Owner, str]] = field(default_factory=list)

    def count_corrections(self, owner: Owner, changes: Sequence[Correction]) -> None:
        """Count the corrections of a user, and add them to `first` while it has fewer than `MAX_FIRST`."""
        self.changed += bool(changes)
        self.counts.update(change.kind for change in changes)
        self.first += [UserCorrection(owner, change) for change in changes[: MAX_FIRST - len(self.first)]]


class Redecision:
    """Redecide of the facts of all users, by an edited copy of the general settings.

    A tenant's own settings override the edited ones, unless the two are invalid together.
    """

    def __init__(
        self,
        connection: Client,
        database: Database,
        embedder: Embedder,
        edit: Callable[[Document], Document],
    ) -> None:
        self._connection = connection
        self._database = database
        self._deciding = Redecider(connection, database, embedder)
        self._edit = edit

    async def preview_corrections(self, progress: Callable[[int, int], None]) -> RedecideOutcome:
        """Return the corrections without making them.

        `progress` is called with the number of users that are done, and the number of all users.

        Raises:
            SettingsNotProvisioned: the bucket of settings does not exist.
            DatabaseUnavailable, EmbeddingUnavailable, nats.errors.Error: a server does not answer now.
        """
        return await self._redecide_all(self._deciding.find_corrections, progress)

    async def make_corrections(self, progress: Callable[[int, int], None]) -> RedecideOutcome:
        """Correct the facts of all users; return the corrections.

        After an interruption some users are done; another call completes the remaining users.

        `progress` is called with the same numbers as in `preview_corrections`.

        Raises:
            SettingsNotProvisioned: the bucket of settings does not exist.
            DatabaseUnavailable, EmbeddingUnavailable, nats.errors.Error: a server does not answer now; some
                users are done.
        """
        return await self._redecide_all(self._deciding.append_corrections, progress)

    async def _redecide_all(
        self,
        decide: Callable[[Owner, SettingsV1], Awaitable[Sequence[Correction]]],
        progress: Callable[[int, int], None],
    ) -> RedecideOutcome:
        found = RedecideOutcome()
        count = await self._database.run_query(count_fact_owners)
        last: Owner | None = None
        while owners := await self._database.run_query(list_fact_owners(last)):
            for owner in owners:
                if last is None or last[0] != owner[0]:
                    settings = await self._load_settings(owner[0])
                last = owner
                try:
                    found.count_corrections(owner, await decide(owner, settings))
                except ValueError as error:
                    found.left.append((owner, str(error)))
                found.users += 1
                progress(found.users, max(count, found.users))
        return found

    async def _load_settings(self, tenant: str) -> SettingsV1:
        default, own = await read_documents(self._connection, tenant)
        chosen = self._edit(default)
        try:
            return resolve_settings(chosen, own)
        except InvalidBody:
            return resolve_settings(chosen)  # every process ignores invalid settings of a tenant
