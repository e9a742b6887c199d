"""Action of `mnemon rebuild --redecide`: show the changes to facts, and make them after confirmation."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from mnemon.cli.options.target import complete_command, open_deployment
from mnemon.cli.rebuild.actions import show_result
from mnemon.cli.settings import parse_assignment
from mnemon.cli.terminal.exit_code import ExitCode, refuse
from mnemon.cli.terminal.output import show_progress, show_table
from mnemon.cli.terminal.prompt import ask_confirmation, can_ask

if TYPE_CHECKING:
    from mnemon.operations.rebuild.redecide import RedecideOutcome, Redecision
    from mnemon_contracts.settings.document import Document

CURRENT = "current"
"""Assignment that changes no setting: the facts are redecided by the settings in force."""

_GROUP = "dedupe."

_KINDS = {
    "merged": "is merged into another fact",
    "apart": "becomes a fact of its own",
    "rewritten": "is rewritten",
    "evicted": "is evicted: the user has too many facts",
}


async def redecide(
    data: Path | None, assignments: Sequence[str], is_confirmed: bool, as_json: bool
) -> ExitCode:
    """Show the changes to facts under this version's rules and other settings; make them if confirmed.

    End the command if a setting is invalid, or if there is no embedding model to compare facts with.

    `assignments` are settings of `dedupe`, as NAME=VALUE; the assignment `CURRENT` changes no setting.
    """
    from mnemon.operations.rebuild.embedding import choose_embedding
    from mnemon.operations.rebuild.redecide import Redecision
    from mnemon_contracts.base import InvalidBody
    from mnemon_contracts.settings.document import resolve_settings
    from mnemon_infra.models.embedders.embedder_choice import open_embedder
    from mnemon_infra.rebuild.generations import open_site
    from mnemon_infra.settings.store import change_settings, read_documents

    changed_settings = [each for each in assignments if each != CURRENT]
    edit = _create_edit(changed_settings, data)
    async with open_deployment(data, "broker", "database") as servers, open_site(servers.deployment) as site:
        try:
            resolve_settings(edit((await read_documents(site.connection))[0]))
        except InvalidBody as error:
            listing = complete_command("mnemon settings get dedupe", data)
            refuse(ExitCode.USAGE_ERROR, str(error), f"List the settings: {listing}")
        embedding = await choose_embedding(site, site.deployment)
        async with open_embedder(embedding, site.deployment) as embedder:
            if embedder is None:
                refuse(
                    ExitCode.USAGE_ERROR,
                    "memory has no vectors of an embedding model, by which facts are compared",
                    "While mnemon is stopped, make them: "
                    f"{complete_command('mnemon rebuild --reembed PROVIDER', data)}",
                )
            redeciding = Redecision(site.connection, site.database, embedder, edit)
            if not is_confirmed:
                with show_progress(description="redeciding users") as update:
                    outcome = await redeciding.preview_corrections(
                        lambda done, total: update(completed=done, total=total)
                    )
                if as_json or not await _confirm_outcome(outcome):
                    _show_unchanged(outcome, changed_settings, data, as_json)
                    return ExitCode.DONE
            revision = None
            if changed_settings:
                # Change the settings first: `dedupe` then decides on new proposals by them.
                revision = await change_settings(site.connection, edit)
            outcome = await _make_corrections(redeciding)
    if not as_json:
        _show_outcome(outcome)
    show_result(
        as_json,
        {**_outcome_to_json(outcome), "changed": True, "revision": revision},
        _describe_result(outcome, revision),
    )
    return ExitCode.DONE


async def _make_corrections(redeciding: "Redecision") -> "RedecideOutcome":
    try:
        with show_progress(description="redeciding users") as update:
            return await redeciding.make_corrections(lambda done, total: update(completed=done, total=total))
    except asyncio.CancelledError:
        typer.echo(
            "mnemon: interrupted; not all users are done. Run the same command again to continue", err=True
        )
        raise


def _create_edit(assignments: Sequence[str], data: Path | None) -> "Callable[[Document], Document]":
    from mnemon_contracts.settings.document import set_value

    for each in assignments:
        if not each.startswith(_GROUP):
            refuse(
                ExitCode.USAGE_ERROR,
                f"--redecide {each.partition('=')[0]}: only settings of the group dedupe are accepted",
                "For example: --redecide dedupe.update_threshold=0.8",
            )
    pairs = [parse_assignment(each, data) for each in assignments]

    def edit(document: "Document") -> "Document":
        for name, value in pairs:
            document = set_value(document, name, value)
        return document

    return edit


async def _confirm_outcome(outcome: "RedecideOutcome") -> bool:
    _show_outcome(outcome)
    return bool(outcome.changed) and can_ask() and await ask_confirmation("Make these changes?")


def _show_unchanged(
    outcome: "RedecideOutcome", changed_settings: Sequence[str], data: Path | None, as_json: bool
) -> None:
    options = " ".join(f"--redecide {quote(each)}" for each in changed_settings) or "--redecide"
    command = complete_command(f"mnemon rebuild {options} --yes", data)
    if changed_settings:
        advice = f" To change the facts and the settings: {command}"
    elif outcome.changed:
        advice = f" To change the facts: {command}"
    else:
        advice = ""
    show_result(as_json, {**_outcome_to_json(outcome), "changed": False}, f"Nothing was changed.{advice}")


def _describe_result(outcome: "RedecideOutcome", revision: int | None) -> str:
    facts = "The facts are changed" if outcome.changed else "No fact needed a change"
    if revision is None:
        return f"{facts}; the settings stay as they are."
    return f"{facts}; the settings are in force as revision {revision}."


def _outcome_to_json(outcome: "RedecideOutcome") -> dict[str, Any]:
    return {
        "users": outcome.users,
        "users_changed": outcome.changed,
        **{kind: outcome.counts[kind] for kind in _KINDS},
        "first": [
            {"tenant": owner[0], "user": owner[1], **change._asdict()} for owner, change in outcome.first
        ],
        "left": [{"tenant": owner[0], "user": owner[1], "reason": reason} for owner, reason in outcome.left],
    }


def _show_outcome(outcome: "RedecideOutcome") -> None:
    typer.echo(f"users with facts: {outcome.users:,}; with changes: {outcome.changed:,}")
    for (tenant, user), reason in outcome.left:
        typer.secho(f"user {user} of {tenant} was left unchanged: {reason}", fg="yellow", err=True)
    if not outcome.changed:
        return
    show_table(("change", "facts"), [(words, outcome.counts[kind]) for kind, words in _KINDS.items()])
    typer.echo("")
    show_table(
        ("user", "fact", "change", "text", "other fact", "new text"),
        [
            (
                f"{tenant}/{user}",
                *(change.fact_id, change.kind, change.text),
                *(change.other or "", change.becomes or ""),
            )
            for (tenant, user), change in outcome.first
        ],
        texts=("text", "new text"),
    )
