"""Dead letters on the terminal, and what to do about them."""

import json
from collections.abc import Sequence
from typing import Any

import typer
from nats.aio.msg import Msg

from contracts.base import InvalidBody
from contracts.decode import UnknownEvent
from contracts.subjects import InvalidSubject
from infra.broker.letters import Letter
from infra.broker.log_reader import delivery_of
from infra.database.rows import row_of
from mnemon.cli.output import Figure, show_table

WIDEST = 80
"""Characters of a cell of the table; `show` has all of them."""


def summary(letter: Letter) -> dict[str, Any]:
    """A letter for a program, without its text."""
    tenant, user = letter.owner or (None, None)
    return {
        "id": letter.id,
        "at": f"{letter.at:%Y-%m-%dT%H:%M:%SZ}",
        "consumer": letter.consumer,
        "reason": letter.reason,
        "error": letter.error,
        "kind": letter.kind,
        "subject": letter.subject,
        "tenant": tenant,
        "user": user,
        "stream": letter.stream or None,
        "sequence": letter.sequence or None,
        "bytes": len(letter.body),
    }


def show_letters(newest: Sequence[dict[str, Any]], count: int, as_json: bool) -> None:
    """Show the newest letters, each as its `summary`, of `count` in all."""
    if as_json:
        typer.echo(json.dumps({"count": count, "letters": list(newest)}))
        return
    if not count:
        typer.echo("no dead letters")
        return
    columns = "id", "at", "consumer", "reason", "subject", "error"
    # An id as it is to be typed again, without commas.
    rows = [[Figure(each["id"]), *(_cell(each[name]) for name in columns[1:])] for each in newest]
    show_table(columns, rows)
    shown = (
        f"the newest {len(newest):,} of {count:,} dead letters"
        if count > len(newest)
        else f"{count:,} in all"
    )
    typer.echo(f"\n{shown}. One of them with its text: mnemon dead show ID")


def show_letter(letter: Letter, original: Msg | None, as_json: bool) -> None:
    """Show all of a letter. `original` is the event that it is about, as far as it is in the log."""
    body = original.data if original is not None and letter.left_out else letter.body
    found = summary(letter) | {
        "headers": dict(letter.headers),
        "left_out": letter.left_out,
        "in_log": original is not None if letter.kind == "event" else None,
        "next": advice(letter, original),
        "body": body.decode(errors="replace"),
    }
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, value in found.items():
        if name != "body" and value not in (None, {}):
            typer.echo(f"{name:<10}{_printable(value if isinstance(value, str) else json.dumps(value))}")
    typer.echo(f"\n{_printable(found['body'])}")


def advice(letter: Letter, original: Msg | None) -> str:
    """The next step. `original` is the event that the letter is about, as far as it is in the log."""
    drop = f"mnemon dead drop {letter.id}"
    match letter.kind:
        case "answer":
            return f"a model's answer cannot be given back; look what the model is asked, then: {drop}"
        case "trigger":
            if letter.left_out:
                return f"the trigger is not known in full, and cannot be given back: {drop}"
            return f"after a fix: mnemon dead redrive {letter.id}, or do without: {drop}"
        case "event":
            return _advice_on_event(letter, original, drop)


def _advice_on_event(letter: Letter, original: Msg | None, drop: str) -> str:
    if original is None:
        return f"the log no longer has the event: {drop}"
    redrive = f"mnemon dead redrive {letter.id}"
    try:
        row_of(delivery_of(original))
    except (InvalidSubject, UnknownEvent, InvalidBody) as error:
        return f"this version cannot read it ({error}); with one that can: {redrive}. Or do without: {drop}"
    return f"this version can read it, and the consumers too if they are of this version: {redrive}"


def _cell(value: str) -> str:
    shown = _printable(value)
    return f"{shown[:WIDEST]}\N{HORIZONTAL ELLIPSIS}" if len(shown) > WIDEST else shown


def _printable(text: str) -> str:
    """What came from outside must not steer the terminal."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text
    )
