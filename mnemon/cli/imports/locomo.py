"""Conversations of the LoCoMo benchmark, as `mnemon import locomo` reads and shows them."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mnemon.cli.terminal.exit_code import ExitCode, refuse, refuse_file
from mnemon.cli.terminal.output import show_json, show_table
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon_producers.locomo import LocomoConversation
    from mnemon_producers.publisher import Published


def read_locomo(file: Path, tenant: str, user: str | None) -> "list[LocomoConversation]":
    from mnemon_producers.locomo import NotLocomo, read_conversations

    try:
        return read_conversations(file.read_bytes(), tenant=tenant, user=user)
    except OSError as error:
        refuse_file(file, "read", error)
    except NotLocomo as error:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{file} is not a LoCoMo file: {error}",
            "Correct the file, or give one in the format of locomo10.json",
        )


def show_conversations(
    conversations: "list[LocomoConversation]", published: "Published | None", as_json: bool
) -> None:
    if as_json:
        summary = {
            "conversations": [
                {
                    "user": conversation.events[0].user,
                    "conversation": conversation.name,
                    "sessions": conversation.sessions,
                    "turns": conversation.turns,
                }
                for conversation in conversations
            ],
            "published": published.count - published.duplicates if published else 0,
            "already_there": published.duplicates if published else 0,
            "last_seq": published.last_seq if published else None,
        }
        show_json(summary)
        return
    show_table(
        ("user", "conversation", "sessions", "turns"),
        [(one.events[0].user, one.name, one.sessions, one.turns) for one in conversations],
    )
    if published is None:
        typer.echo("Nothing was sent.")
    else:
        new = published.count - published.duplicates
        typer.echo(f"{format_count(new, 'event')} published, {published.duplicates:,} already there.")
