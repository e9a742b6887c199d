"""Reader of facts in Markdown (`mnemon.operations.markdown_lines`).

The reader accepts three kinds of files: mnemon's export; files of a bot that has a folder per user with a
file per tier; and older files of that bot, one per user with a fact on each line. A line with a check box
among facts is a task.

A fact keeps its id on four conditions: its line has an id, a tier and an importance; the default policy
accepts the fact; no other fact of the user has the id; and the user has no facts of other sources. Otherwise
the fact is proposed, and `dedupe` decides as on any proposal.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Literal

from mnemon.operations.imports.records import (
    ImportRecord,
    IncomingEvent,
    NotReadable,
    RefusedRecord,
    create_import_id,
)
from mnemon.operations.markdown_lines import (
    TIERS,
    MarkdownLine,
    WrongMark,
    has_check_box,
    parse_fact,
    parse_field,
    parse_owner,
    parse_task,
)
from mnemon_consumers.dedupe.classification import classify_proposal
from mnemon_consumers.domain.policy.refusal import find_refusal
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
"""First part of the ids of events from Markdown."""

MarkdownSection = Literal["facts", "data", "tasks"]

_SECTIONS: Final[dict[str, MarkdownSection]] = {"user data": "data", "tasks": "tasks"}


@dataclass(slots=True)
class MarkdownReader:
    """Reader of a Markdown file with facts, profile fields and tasks.

    Attributes:
        tenant: the tenant that gets all records; None means the tenant that the file names.
        user: the user that gets all records; None means the user that the file names, else the user in the
            path of the file.
    """

    tenant: str | None = None
    user: str | None = None

    def read(self, file: BinaryIO) -> Iterator[ImportRecord]:
        """Yield the facts, profile fields and tasks of a file, or their refusals, in its order.

        Raises:
            NotReadable: the owner is named neither by the reader nor by the file or its path, or the file is
                not UTF-8 text.
        """
        tier, named = parse_path(Path(file.name))
        place = _LineOwner(self.tenant, self.user or named, "facts", tier)
        for number, line in enumerate(file, 1):
            where = f"line {number}"
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise NotReadable(f"{where} is not text in UTF-8: save the file as UTF-8") from error
            if owner := parse_owner(text):
                place = _LineOwner(self.tenant or owner[0], self.user or owner[1], "facts", None)
            elif text.lstrip().startswith("#"):
                place = place.with_heading(text.strip().strip("#").strip().lower())
            elif text.strip() and not text.strip().startswith(("<!--", "---")):
                yield from place.read_line(where, text)


@dataclass(frozen=True, slots=True)
class _LineOwner:
    """The owner of a line, and the section and tier that the heading above it, or else the path, names."""

    tenant: str | None
    user: str | None
    section: MarkdownSection
    tier: Tier | None

    def with_heading(self, heading: str) -> "_LineOwner":
        """Return the same owner, with the section and the tier that a heading names."""
        tier = next((each for each in TIERS if heading.startswith(each)), None)
        return _LineOwner(self.tenant, self.user, _SECTIONS.get(heading, "facts"), tier)

    def read_line(self, place: str, line: str) -> Iterator[ImportRecord]:
        if self.user is None or self.tenant is None:
            missing = "tenant" if self.tenant is None else "user"
            raise NotReadable(f"the file does not name its {missing}; name the {missing} with --{missing}")
        readers: dict[MarkdownSection, Callable[[str, str], list[Event]]] = {
            "facts": self._read_fact,
            "data": self._read_field,
            "tasks": self._read_task,
        }
        section = "tasks" if self.section == "facts" and has_check_box(line) else self.section
        try:
            first, *others = readers[section](line, _digest_line(self.user, section, line))
            if isinstance(first, FactSavedV1):
                [proposed] = others
                yield IncomingEvent(place, self.user, first, line, tenant=self.tenant, instead=proposed)
                return
            for event in first, *others:
                yield IncomingEvent(place, self.user, event, line, tenant=self.tenant)
        except WrongMark as error:
            yield RefusedRecord(place, error.mark, error.reason, line)
        except InvalidBody as error:
            yield RefusedRecord(place, error.field, error.problem, line)

    def _read_fact(self, line: str, digest: str) -> list[Event]:
        """Return the saved fact that `_create_saved_fact` makes, if any, then the same fact as a proposal."""
        read = parse_fact(line)
        proposed = FactProposedV1.create_strict(
            id=create_import_id(PREFIX, digest),
            text=read.text,
            tier=read.tier or self.tier,
            importance=read.importance,
            expires_at=read.expires_at,
            lineage=Lineage(extractor="import"),
        )
        return [each for each in (_create_saved_fact(read, proposed), proposed) if each is not None]

    def _read_field(self, line: str, digest: str) -> list[Event]:
        read = parse_field(line)
        if read is None:
            raise WrongMark("line", "must have the form `- name: value`")
        return [ProfileSetV1.create_strict(id=create_import_id(PREFIX, digest), fields=dict([read]))]

    def _read_task(self, line: str, digest: str) -> list[Event]:
        read, is_done = parse_task(line)
        task_id = read.id or digest
        added_id, done_id = create_import_id(PREFIX, digest), create_import_id(PREFIX, digest, "done")
        added = TaskAddedV1.create_strict(id=added_id, task_id=task_id, text=read.text, due_at=read.due_at)
        return [added, *([TaskDoneV1.create_strict(id=done_id, task_id=task_id)] if is_done else [])]


def parse_path(path: Path) -> tuple[Tier | None, str | None]:
    """Return the tier and the user that a path names; None for a tier or a user that the path does not name.

    `users/42/profile.md` and `42.md` both name user 42.
    """
    if path.suffix.lower() != ".md":
        return None, None
    tier = next((each for each in TIERS if each == path.stem.lower()), None)
    return tier, (path.parent.name or None) if tier else path.stem


def _create_saved_fact(read: MarkdownLine, proposed: FactProposedV1) -> FactSavedV1 | None:
    """Return the fact of a line under its own id.

    Return None if the fact lacks an id, a tier or an importance, or if the default policy rejects it: then
    `dedupe` decides by the policy of the tenant.
    """
    settings = SettingsV1()
    if read.id is None or read.tier is None or read.importance is None:
        return None
    if find_refusal(proposed.text, settings.policy):
        return None
    # With the largest time no expiry depends on the present: a fact expires only if its line names a date.
    fact = classify_proposal(proposed, datetime.max.replace(tzinfo=UTC), settings)
    return FactSavedV1.create_strict(
        id=proposed.id,
        fact_id=read.id,
        fact=fact,
        decision=Decision(proposal_id=str(proposed.id)),
        lineage=proposed.lineage,
    )


def _digest_line(user: str, section: str, line: str) -> str:
    """Return a digest of the user, the section and the line, independent of the place of the line."""
    return sha256(
        "\0".join((user, section, " ".join(line.split()))).encode(errors="surrogatepass")
    ).hexdigest()[:32]
