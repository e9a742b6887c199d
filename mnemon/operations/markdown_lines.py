"""Facts, profile fields and tasks as lines of Markdown: written and parsed.

    - [id:pf_001] [t:profile] [imp:high] [exp:2026-12-31] Likes tea
    - city: Lisbon
    - [x] [id:3f0c] [due:2026-12-01] Call the bank

The line of a fact keeps less than the fact has: the line has no kind, the importance is one of three words,
and the expiry is a day. Parsing a written line and writing it again gives the same line.
"""

import json
import re
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple, get_args

from mnemon_consumers.retrieve.verbs.facts.view import IMPORTANCE
from mnemon_contracts.events.memory import Fact, Tier
from mnemon_contracts.fact_lines import format_fact_line
from mnemon_contracts.verbs.tools import StoredFact

TIERS: Final[tuple[Tier, ...]] = get_args(Tier)

_MARK: Final = re.compile(r"\[(id|t|imp|exp|due):([^\[\]]*)\](?:\s+|\Z)")
_LIKE_A_MARK: Final = re.compile(r"\\*\[(?:id|t|imp|exp|due):")
_BULLET: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_BOX: Final = re.compile(r"\[([ xX])\]\s+")
_OWNER: Final = re.compile(r"<!-- mnemon (\{.*\}) -->")


class WrongMark(ValueError):
    """A mark of a line has an invalid value, or the line of a profile field cannot be parsed.

    Attributes:
        mark: name of the mark, such as `exp`; `line` for a profile field.
        reason: the reason why the value is invalid.
    """

    def __init__(self, mark: str, reason: str) -> None:
        super().__init__(reason)
        self.mark = mark
        self.reason = reason


class MarkdownLine(NamedTuple):
    """A parsed line: its text, and the values of its marks; None for a mark that the line does not have."""

    text: str
    id: str | None = None
    tier: Tier | None = None
    importance: int | None = None
    expires_at: datetime | None = None
    due_at: datetime | None = None


def format_fact(fact_id: str, fact: Fact) -> str:
    """Return a fact as a line of Markdown, which `parse_fact` reads."""
    text = " ".join(fact.text.split())
    return format_fact_line(
        StoredFact(id=fact_id, **fact.model_copy(update={"text": _escape_text(text)}).model_dump())
    )


def format_field(name: str, value: Any) -> str:
    """Return a profile field as a line of Markdown, which `parse_field` reads.

    Name and value are each written as they are if they are printable and `parse_field` reads them back
    unchanged, else as JSON.
    """
    is_plain = isinstance(value, str) and value.isprintable() and _is_read_as_text(value)
    if not name.isprintable() or parse_field(f"{name}: 1") != (name, 1):
        name = _format_json(name)
    return f"- {name}: {value if is_plain else _format_json(value)}"


def format_task(task_id: str, text: str, due_at: datetime | None, *, done: bool) -> str:
    """Return a task as a line of Markdown, which `parse_task` reads."""
    due = f"[due:{_format_moment(due_at)}] " if due_at is not None else ""
    return f"- [{'x' if done else ' '}] [id:{task_id}] {due}{_escape_text(' '.join(text.split()))}"


def format_owner(tenant: str, user: str) -> str:
    """Return a comment that names the owner of the lines that follow. Rendered Markdown hides comments."""
    return f"<!-- mnemon {_format_json({'tenant': tenant, 'user': user}).replace('>', chr(92) + 'u003e')} -->"


def parse_owner(line: str) -> tuple[str, str] | None:
    """Return the tenant and the user that a comment names; None if the line is not such a comment."""
    if found := _OWNER.fullmatch(line.strip()):
        try:
            named = json.loads(found[1])
            return str(named["tenant"]), str(named["user"])
        except (ValueError, KeyError, RecursionError):
            return None
    return None


def parse_fact(line: str) -> MarkdownLine:
    """Parse the line of a fact, with or without marks.

    Raises:
        WrongMark: one of the marks has an invalid value.
    """
    rest = _BULLET.sub("", line, count=1).strip()
    marks: dict[str, str] = {}
    while (found := _MARK.match(rest)) and found[1] not in marks:
        marks[found[1]] = found[2].strip()
        rest = rest[found.end() :]
    return MarkdownLine(
        text=_unescape_text(rest.strip()),
        id=marks.get("id") or None,
        tier=_parse_tier(marks["t"]) if "t" in marks else None,
        importance=_parse_importance(marks["imp"]) if "imp" in marks else None,
        expires_at=_parse_date("exp", marks["exp"]) if "exp" in marks else None,
        due_at=_parse_date("due", marks["due"]) if "due" in marks else None,
    )


def parse_task(line: str) -> tuple[MarkdownLine, bool]:
    """Parse the line of a task; also return whether the task is done.

    Raises:
        WrongMark: one of the marks has an invalid value.
    """
    rest = _BULLET.sub("", line, count=1)
    box = _BOX.match(rest)
    return parse_fact(f"- {rest[box.end() :] if box else rest}"), bool(box and box[1] != " ")


def has_check_box(line: str) -> bool:
    """Return whether a line is an item of a list that begins with a check box, `[ ]` or `[x]`."""
    bullet = _BULLET.match(line)
    return bullet is not None and _BOX.match(line, bullet.end()) is not None


def parse_field(line: str) -> tuple[str, Any] | None:
    """Parse the line of a profile field into name and value; return None if the line has another form.

    Raises:
        WrongMark: the value is nested too deeply.
    """
    rest = _BULLET.sub("", line, count=1).strip()
    if rest.startswith('"'):
        try:
            name, end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            return None
        if not isinstance(name, str) or not rest[end:].startswith(": "):
            return None
        value = rest[end + 2 :]
    else:
        name, between, value = rest.partition(": ")
        if not between or not name.strip():
            return None
        name = name.strip()
    value = value.strip()
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
    except RecursionError as error:
        raise WrongMark("line", "has JSON that is nested too deeply; use fewer levels") from error


def _is_read_as_text(value: str) -> bool:
    try:
        return parse_field(f"x: {value}") == ("x", value)
    except WrongMark:
        return False


def _escape_text(text: str) -> str:
    """Escape a text that the parser would take for a mark."""
    return f"\\{text}" if _LIKE_A_MARK.match(text) else text


def _unescape_text(text: str) -> str:
    return text[1:] if text.startswith("\\") and _LIKE_A_MARK.match(text) else text


def _format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _format_moment(at: datetime) -> str:
    at = at.astimezone(UTC)
    is_day = at.time() == datetime.min.time()
    return f"{at:%Y-%m-%d}" if is_day else at.isoformat().replace("+00:00", "Z")


def _parse_tier(written: str) -> Tier:
    for tier in TIERS:
        if written.lower() == tier:
            return tier
    raise WrongMark("t", f"must be one of {', '.join(TIERS)}, not {written!r}")


def _parse_importance(written: str) -> int:
    for word, number in IMPORTANCE.items():
        if written.lower() == word:
            return number
    if written.isdecimal():
        with suppress(ValueError):  # Python converts 4,300 digits at most
            if 1 <= (number := int(written)) <= 10:
                return number
    raise WrongMark("imp", f"must be high, normal, low, or a whole number from 1 to 10, not {written!r}")


def _parse_date(mark: str, written: str) -> datetime:
    try:
        if len(written) == 10:
            return datetime.combine(date.fromisoformat(written), datetime.min.time(), UTC)
        at = datetime.fromisoformat(written)
    except ValueError as error:
        raise WrongMark(mark, f"must be a date such as 2026-12-31, not {written!r}") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
