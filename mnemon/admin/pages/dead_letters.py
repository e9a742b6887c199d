"""Dead letters: list, redrive and removal of messages that a consumer could not handle."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from mnemon.admin.forms.fields import parse_whole_number
from mnemon.admin.page import PageSection, Visit
from mnemon.admin.rendering.outages import PageError
from mnemon.display_text import format_count
from mnemon.operations.dead_letters import assess_redrive, drop_letters, get_letter_body, redrive_letters
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.streams import DEAD
from mnemon_infra.broker.dead_letters.listing import Letter, LetterFilter, read_letter, read_newest_letters
from mnemon_infra.broker.dead_letters.redrive import (
    AppliedLetter,
    KeptLetter,
    RedrivenLetter,
    find_original,
)
from mnemon_infra.broker.provisioning.paused_consumers import list_paused_consumers, resume_consumer
from mnemon_infra.durables import DURABLES

pages = PageSection("Dead letters", "/dead")

PAGE_SIZE: Final = 50
"""Maximum number of dead letters on a page."""

MAX_BODY_CHARACTERS: Final = 20_000
"""Maximum number of characters of a body on the page; `mnemon dead show` prints the whole body."""

_FILTERS: Final = ("consumer", "reason", "tenant", "user", "since")
_CONSUMERS: Final = sorted({*DURABLES, "compact", "extract"})
"""Names of consumers in dead letters. `extract` also writes dead letters about the answers of models."""


class NamedField(NamedTuple):
    """The field that the error of a dead letter names, the problem, and the value in JSON.

    The value is None if the body lacks the field or is not JSON.
    """

    field: str
    problem: str
    value: str | None


@pages.get("/dead")
async def show_letters(visit: Visit) -> Response:
    """Show the newest dead letters that match the filters, and the consumers that are paused."""
    filters = {name: visit.query.get(name, "").strip() for name in _FILTERS}
    before = visit.query.get_number("before")
    connection = await visit.connections.get_broker()
    state = (await connection.jetstream().stream_info(DEAD)).state
    found = await read_newest_letters(connection, _parse_filter(filters), before, PAGE_SIZE + 1)
    return visit.render(
        "dead_letters/list.html",
        letters=found[:PAGE_SIZE],
        older=found[PAGE_SIZE - 1].id if len(found) > PAGE_SIZE else None,
        is_first=before is None,
        total=state.messages,
        filters=filters,
        used={name: value for name, value in filters.items() if value},
        consumers=[("", "any"), *((each, each) for each in _CONSUMERS)],
        paused=await list_paused_consumers(connection),
    )


@pages.get("/dead/{id}")
async def show_letter(visit: Visit) -> Response:
    """Show the reason, the next step, the origin, the headers and the body of a dead letter."""
    id_ = parse_whole_number(visit.request.path_params["id"])
    if id_ is None:
        raise InvalidBody("id", "must be the id of a dead letter, such as 17")
    connection = await visit.connections.get_broker()
    found = await read_letter(connection, id_)
    if found is None:
        return visit.render_error(_describe_missing_letter(id_))
    original = await find_original(connection, found) if found.kind == "event" else None
    body = get_letter_body(found, original)
    text = _format_body(body)
    return visit.render(
        "dead_letters/letter.html",
        letter=found,
        named=_find_named_field(found, body),
        in_log=original is not None,
        prospect=assess_redrive(found, original),
        text=text[:MAX_BODY_CHARACTERS],
        left=len(text) - MAX_BODY_CHARACTERS,
        size=len(body),
    )


@pages.post("/dead/redrive")
async def redrive_selected_letters(visit: Visit) -> Response:
    """Redrive the selected dead letters, and show how many were redriven."""
    chosen = _parse_selected_ids(visit.form)
    if not chosen:
        return visit.redirect("/dead", "No letter was selected.")
    connection = await visit.connections.get_broker()
    database = await visit.connections.get_database()
    given: list[RedrivenLetter] = []
    applied, kept = 0, list[str]()
    async for letter, result in redrive_letters(connection, database, chosen):
        match result:
            case RedrivenLetter() as back:
                given.append(back)
            case AppliedLetter():
                applied += 1
            case KeptLetter(why):
                kept.append(f"Letter {letter.id} was not redriven: {why}.")
    return visit.redirect(
        "/dead", " ".join([*_describe_redrive(given, applied), *kept]) or "The letters were removed already."
    )


@pages.post("/dead/confirm")
async def confirm_drop(visit: Visit) -> Response:
    """Ask to confirm the removal of the selected dead letters."""
    chosen = _parse_selected_ids(visit.form)
    if not chosen:
        return visit.redirect("/dead", "No letter was selected.")
    connection = await visit.connections.get_broker()
    found = [each for id_ in chosen if (each := await read_letter(connection, id_))]
    return visit.render("dead_letters/drop.html", letters=found)


@pages.post("/dead/drop")
async def drop_selected_letters(visit: Visit) -> Response:
    """Delete the selected dead letters, and with letters of `persist` the events whose rows are missing."""
    connection = await visit.connections.get_broker()
    database = await visit.connections.get_database()
    count = await drop_letters(connection, database, _parse_selected_ids(visit.form))
    return visit.redirect("/dead", f"{format_count(count, 'letter')} deleted for good.")


@pages.post("/dead/go-on")
async def resume_paused_consumer(visit: Visit) -> Response:
    """Resume a paused consumer before the end of its pause."""
    consumer = visit.form["consumer"]
    if not await resume_consumer(await visit.connections.get_broker(), consumer):
        return visit.render_error(
            PageError(404, "No such consumer", f"There is no consumer {consumer}.", "Reload the page.")
        )
    return visit.redirect("/dead", f"{consumer} resumed.")


def _parse_filter(filters: Mapping[str, str]) -> LetterFilter:
    since = filters["since"]
    try:
        at = datetime.fromisoformat(since).replace(tzinfo=UTC) if since else None
    except ValueError as error:
        raise InvalidBody("since", "must be a date or time such as 2026-11-21") from error
    given = {name: filters[name] or None for name in _FILTERS[:-1]}
    return LetterFilter(**given, since=at)


def _parse_selected_ids(form: Mapping[str, str]) -> list[int]:
    """Return the ids of the ticked dead letters, or of all shown if `which` is `shown`; oldest first."""
    prefix = "shown." if form.get("which") == "shown" else "letter."
    found = (name.removeprefix(prefix) for name in form if name.startswith(prefix))
    return sorted(id_ for each in found if (id_ := parse_whole_number(each)) is not None)


def _describe_redrive(given: Sequence[RedrivenLetter], applied: int) -> list[str]:
    said = []
    if len(given) == 1:
        said.append(f"1 letter redriven: its message is at position {given[0].sequence:,} of its stream now.")
    elif given:
        said.append(f"{format_count(len(given), 'letter')} redriven: their messages are handled again.")
    if applied:
        said.append(f"{format_count(applied, 'letter')} removed: their events are applied already.")
    return said


def _describe_missing_letter(id_: int) -> PageError:
    return PageError(
        404,
        f"Dead letter {id_} does not exist",
        "The dead letter was redriven, dropped, or removed by retention or an erasure, or never existed.",
        "See the list of dead letters.",
    )


def _format_body(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


def _find_named_field(letter: Letter, body: bytes) -> NamedField | None:
    if letter.reason != "invalid_body":
        return None
    field, _, problem = letter.error.partition(": ")
    try:
        value: Any = json.loads(body)
        for part in field.split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
    except (ValueError, LookupError, TypeError, RecursionError):
        return NamedField(field, problem, None)
    return NamedField(field, problem, json.dumps(value, ensure_ascii=False))
