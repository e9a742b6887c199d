"""Facts in Markdown: files of mnemon's export, the folders of a bot that has a file per tier, and its older
ones that have one file per user with a fact on each line (`mnemon.operations.markdown_lines`).

A fact that has an id keeps it where the user has no other facts; everywhere else it is proposed, and decided
like any other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Literal

from mnemon.operations.imports.records import ImportRecord, Incoming, NotReadable, Refused, import_id
from mnemon.operations.markdown_lines import (
    TIERS,
    MarkdownLine,
    WrongMark,
    fact_read,
    field_read,
    owner_read,
    task_read,
)
from mnemon_consumers.dedupe.classification import classify
from mnemon_consumers.domain.policy.refusal import refusal
from mnemon_contracts.base import Event, InvalidBody
from mnemon_contracts.events.memory import (
    Decision,
    FactProposedV1,
    FactSavedV1,
    Lineage,
    ProfileSetV1,
    TaskAddedV1,
    TaskDoneV1,
    Tier,
)
from mnemon_contracts.settings.groups import SettingsV1

PREFIX: Final = "markdown"
"""How ids of what came from Markdown begin."""

MarkdownSection = Literal["facts", "data", "tasks"]

_SECTIONS: Final[dict[str, MarkdownSection]] = {"user data": "data", "tasks": "tasks"}


@dataclass(slots=True)
class Markdown:
    """How to read a file.

    Attributes:
        tenant: whose all of it becomes; None: as the file says.
        user: the same; where the file does not say it either, it is named after the user.
    """

    tenant: str | None = None
    user: str | None = None

    def read(self, file: BinaryIO) -> Iterator[ImportRecord]:
        """The facts, data and tasks of a file, in its order.

        Raises:
            NotReadable: it does not say whose it is, or is no text.
        """
        tier, named = of_path(Path(file.name))
        place = _Place(self.tenant, self.user or named, "facts", tier)
        for number, line in enumerate(file, 1):
            where = f"line {number}"
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise NotReadable(f"{where} is not text in UTF-8") from error
            if owner := owner_read(text):
                place = _Place(self.tenant or owner[0], self.user or owner[1], "facts", None)
            elif text.lstrip().startswith("#"):
                place = place.under(text.strip().strip("#").strip().lower())
            elif text.strip() and not text.strip().startswith(("<!--", "---")):
                yield from place.found(where, text)


@dataclass(frozen=True, slots=True)
class _Place:
    """Whose a line is, and what the headings above it say of it."""

    tenant: str | None
    user: str | None
    section: MarkdownSection
    tier: Tier | None

    def under(self, heading: str) -> "_Place":
        tier = next((each for each in TIERS if heading.startswith(each)), None)
        return _Place(self.tenant, self.user, _SECTIONS.get(heading, "facts"), tier)

    def found(self, place: str, line: str) -> Iterator[ImportRecord]:
        if self.user is None or self.tenant is None:
            missing = "tenant" if self.tenant is None else "user"
            raise NotReadable(f"the file does not name its {missing}; give it with --{missing}")
        readers: dict[MarkdownSection, Callable[[str, str], list[Event]]] = {
            "facts": self._fact,
            "data": self._field,
            "tasks": self._task,
        }
        try:
            first, *others = readers[self.section](line, _digest(self.user, self.section, line))
            if isinstance(first, FactSavedV1):
                [proposed] = others
                yield Incoming(place, self.user, first, line, tenant=self.tenant, instead=proposed)
                return
            for event in first, *others:
                yield Incoming(place, self.user, event, line, tenant=self.tenant)
        except WrongMark as error:
            yield Refused(place, error.mark, error.reason, line)
        except InvalidBody as error:
            yield Refused(place, error.field, error.problem, line)

    def _fact(self, line: str, digest: str) -> list[Event]:
        """The fact; where it has an id, also as it comes in where that is taken."""
        read = fact_read(line)
        proposed = FactProposedV1.strictly(
            id=import_id(PREFIX, digest),
            text=read.text,
            tier=read.tier or self.tier,
            importance=read.importance,
            expires_at=read.expires_at,
            lineage=Lineage(extractor="import"),
        )
        return [each for each in (_saved(read, proposed), proposed) if each is not None]

    def _field(self, line: str, digest: str) -> list[Event]:
        read = field_read(line)
        if read is None:
            raise WrongMark("line", "must have the form `- name: value`")
        return [ProfileSetV1.strictly(id=import_id(PREFIX, digest), fields=dict([read]))]

    def _task(self, line: str, digest: str) -> list[Event]:
        read, is_done = task_read(line)
        task_id = read.id or digest
        added_id, done_id = import_id(PREFIX, digest), import_id(PREFIX, digest, "done")
        added = TaskAddedV1.strictly(id=added_id, task_id=task_id, text=read.text, due_at=read.due_at)
        return [added, *([TaskDoneV1.strictly(id=done_id, task_id=task_id)] if is_done else [])]


def of_path(path: Path) -> tuple[Tier | None, str | None]:
    """What a name says: `users/42/profile.md` and `42.md` are both of user 42."""
    if path.suffix.lower() != ".md":
        return None, None
    tier = next((each for each in TIERS if each == path.stem.lower()), None)
    return tier, (path.parent.name or None) if tier else path.stem


def _saved(read: MarkdownLine, proposed: FactProposedV1) -> FactSavedV1 | None:
    """The fact under its own id; None where it has none, or a rule may refuse it: dedupe knows the rules."""
    settings = SettingsV1()
    if read.id is None or read.tier is None or read.importance is None:
        return None
    if refusal(proposed.text, settings.policy):
        return None
    # No date depends on the time: by the default settings, a line expires when it says so, and only then.
    fact = classify(proposed, datetime.max.replace(tzinfo=UTC), settings)
    return FactSavedV1.strictly(
        id=proposed.id,
        fact_id=read.id,
        fact=fact,
        decision=Decision(proposal_id=str(proposed.id)),
        lineage=proposed.lineage,
    )


def _digest(user: str, section: str, line: str) -> str:
    """The same for the same line of the same user, wherever it stands."""
    return sha256(
        "\0".join((user, section, " ".join(line.split()))).encode(errors="surrogatepass")
    ).hexdigest()[:32]
