"""Output of dead letters on the terminal, with the next step."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from nats.aio.msg import Msg

from mnemon.cli.options.target import complete_command
from mnemon.cli.terminal.output import Figure, show_table
from mnemon.operations.dead_letters import assess_redrive, get_letter_body
from mnemon_infra.broker.dead_letters.listing import Letter

CELL_CHARACTERS = 80
"""Number of characters after which a cell of the table is cut off; `mnemon dead show` prints whole values."""


def summarize_letter(letter: Letter) -> dict[str, Any]:
    """Return a dead letter as JSON values for a program, without its text."""
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


def show_letters(newest: Sequence[dict[str, Any]], count: int, data: Path | None, as_json: bool) -> None:
    """Show the newest of `count` dead letters, each in the form that `summarize_letter` returns.

    `data` is the folder of the stack, for the next step; None if environment variables name the servers.
    """
    if as_json:
        typer.echo(json.dumps({"count": count, "letters": list(newest)}))
        return
    if not count:
        typer.echo("no dead letters")
        return
    columns = "id", "at", "consumer", "reason", "subject", "error"
    # Show ids without commas, as a command takes them.
    rows = [[Figure(each["id"]), *(_format_cell(each[name]) for name in columns[1:])] for each in newest]
    show_table(columns, rows, texts=("error",))
    shown = (
        f"the newest {len(newest):,} of {count:,} dead letters"
        if count > len(newest)
        else f"{count:,} in all"
    )
    typer.echo(f"\n{shown}. To show one in full: {complete_command('mnemon dead show ID', data)}")


def show_letter(letter: Letter, original: Msg | None, data: Path | None, as_json: bool) -> None:
    """Show a dead letter in full.

    Args:
        letter: the dead letter.
        original: the event that the letter is about; None if the log does not have it, or if the letter is
            about a trigger or an answer.
        data: folder of the stack, for the next step; None if environment variables name the servers.
        as_json: print one JSON value instead of text.
    """
    body = get_letter_body(letter, original)
    found = summarize_letter(letter) | {
        "bytes": len(body),
        "headers": dict(letter.headers),
        "left_out": letter.left_out,
        "in_log": original is not None if letter.kind == "event" else None,
        "next": _describe_next_step(letter, original, data),
        "body_from": "log" if original is not None and letter.left_out else "letter",
        "body": body.decode(errors="replace"),
    }
    if as_json:
        typer.echo(json.dumps(found))
        return
    if letter.left_out:
        found |= {"left_out": f"{letter.left_out}: not in the letter", "body_from": _describe_source(found)}
    for name, value in found.items():
        if name != "body" and value not in (None, {}):
            typer.echo(
                f"{name:<10}{_replace_unprintable(value if isinstance(value, str) else json.dumps(value))}"
            )
    typer.echo(f"\n{_replace_unprintable(found['body'])}")


def show_redrive(redriven: int, applied: int, kept: Sequence[dict[str, Any]], data: Path | None) -> None:
    """Show how many dead letters were redriven or applied already, and why the others were kept.

    `data` is the folder of the stack, for the next step; None if environment variables name the servers.
    """
    typer.echo(f"{redriven:,} redriven")
    if redriven:
        typer.secho(
            "  a message that still cannot be handled becomes a dead letter again, with a new id: "
            f"{complete_command('mnemon dead list', data)}",
            dim=True,
        )
    if applied:
        typer.echo(f"{applied:,} removed: their events are applied already")
    for one in kept:
        typer.echo(f"mnemon: dead letter {one['id']} was not redriven: {one['why']}", err=True)


def _describe_source(found: Mapping[str, Any]) -> str:
    if found["body_from"] == "log":
        return f"the log, at position {found['sequence']}"
    return "the letter; the log no longer has the event" if found["in_log"] is False else "the letter"


def _describe_next_step(letter: Letter, original: Msg | None, data: Path | None) -> str:
    found = assess_redrive(letter, original)
    redrive, drop = (
        complete_command(f"mnemon dead {command} {letter.id}", data) for command in ("redrive", "drop")
    )
    match found.redrive:
        case "now":
            return f"{found.reason}: {redrive}"
        case "after a fix":
            return f"{found.reason}; after a fix: {redrive}. Or drop it: {drop}"
        case "never":
            return f"{found.reason}: {drop}"


def _format_cell(value: str) -> str:
    shown = _replace_unprintable(value)
    return f"{shown[:CELL_CHARACTERS]}\N{HORIZONTAL ELLIPSIS}" if len(shown) > CELL_CHARACTERS else shown


def _replace_unprintable(text: str) -> str:
    """Replace unprintable characters other than tab and newline.

    Text from outside must not control the terminal.
    """
    return "".join(
        each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text
    )
