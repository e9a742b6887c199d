"""Command `mnemon try`: save, read, search and forget a fact as a trial."""

from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from mnemon.cli.imports.progress import ImportFiles
from mnemon.cli.memory.requests import connect_memory
from mnemon.cli.options.target import open_broker
from mnemon.cli.stack.temporary_stack import StartedDataOption, open_servers
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_json, show_table
from mnemon.display_text import make_printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemon_contracts.verbs.tools import StoredFact
    from mnemon_infra.config import Deployment
    from mnemon_producers.client import MemoryClient

DECISION_TIMEOUT = 60.0
"""Seconds to wait for the decisions on the facts of a file."""

TEXT = "Keeps a spare key under the third flowerpot"
QUESTION = "Where is the spare key?"


@perform_async
async def try_(
    user: Annotated[
        str, typer.Argument(metavar="USER", help="User in whose memory the trial saves the fact.")
    ] = "test-user",
    tenant: Annotated[str, typer.Option(help="Tenant of the user.")] = "try",
    text: Annotated[str, typer.Option(help="Text of the fact to save.")] = TEXT,
    query: Annotated[
        str | None,
        typer.Option(
            help=f"Query to search for. Default: the text of --text; for the default fact, {QUESTION!r}."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the user's facts to import first, one fact per line. Default: none.",
        ),
    ] = None,
    data: StartedDataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Save a fact, read it, search for it and forget it, as a trial run for one user.

    If no stack runs in the folder, the command starts one and stops it at the end. The user's former facts
    and the facts of --file stay. The file has the format of `mnemon import markdown`.

    Exits with code 1 if a step fails, or a line of the file is refused.

    Example: `mnemon try anna --data ./memory`

    Example: `mnemon try 42 --file data/memory/42.md --data ./memory`
    """
    from mnemon.operations.imports.markdown import MarkdownReader
    from mnemon_contracts.base import InvalidBody
    from mnemon_producers.errors import AskFailed

    files = ImportFiles([file], MarkdownReader(tenant, user).read) if file else None
    query = query or (QUESTION if text == TEXT else text)

    def print_line(line: str) -> None:
        typer.echo(line, err=as_json)

    async with AsyncExitStack() as ends:
        deployment = await ends.enter_async_context(open_servers(data, print_line, lambda _: nullcontext()))
        memory = await ends.enter_async_context(connect_memory(deployment, tenant, data))
        try:
            steps = [await _import_file(deployment, files, tenant)] if files else []
            steps += await _perform_steps(memory, user, text, query)
        except InvalidBody as error:
            refuse(ExitCode.USAGE_ERROR, str(error))
        except AskFailed as failed:
            typer.echo(f"mnemon: {failed}", err=True)
            return ExitCode.NEGATIVE_RESULT
    if as_json:
        show_json([step._asdict() for step in steps])
    else:
        show_table(("step", "result"), [(step.name, step.result) for step in steps], texts=("result",))
    return ExitCode.DONE if all(step.is_well for step in steps) else ExitCode.NEGATIVE_RESULT


class TrialStep(NamedTuple):
    """A step of the trial, with its result, and whether the result is as expected."""

    name: str
    result: str
    is_well: bool


async def _import_file(deployment: "Deployment", files: ImportFiles, tenant: str) -> TrialStep:
    """Import a file, and wait at most `DECISION_TIMEOUT` seconds until `dedupe` has decided on its facts."""
    from mnemon.operations.imports.report import ImportReport
    from mnemon.operations.imports.run import RecordImporter
    from mnemon_infra.broker.streams.applied_position import AppliedPosition

    report = ImportReport()
    async with open_broker(deployment, "mnemon-try") as connection:
        await RecordImporter(connection, tenant, report, lambda _: None).import_records(files.read_records())
        decided = await AppliedPosition("dedupe").wait_for(
            connection.jetstream(), report.last_seq, DECISION_TIMEOUT
        )
    result = f"{report.published} new, {report.already_there} already there, {report.refused} refused"
    for each in report.first:
        result += f"\n{each.place}: {each.reason}"
    if decided < report.last_seq:
        return TrialStep("import", f"{result}\nnot decided on within {DECISION_TIMEOUT:.0f} s", is_well=False)
    return TrialStep("import", result, is_well=not report.refused)


async def _perform_steps(memory: "MemoryClient", user: str, text: str, query: str) -> list[TrialStep]:
    saved = await memory.save(user, text)
    if saved.id is None or saved.decision == "rejected":
        return [TrialStep("save", f"rejected: {saved.reason}", is_well=False)]
    read = await memory.read(user, min_seq=saved.seen_seq)
    found = await memory.search(user, query, min_seq=saved.seen_seq)
    is_there = _has_fact(read.facts, saved.id)
    hits = [hit for hit in found.hits if hit.id == saved.id]
    steps = [
        TrialStep("save", f"{saved.decision} as {saved.id}", is_well=True),
        TrialStep(
            "read", f"{saved.id} is listed" if is_there else f"{saved.id} is not listed", is_well=is_there
        ),
        TrialStep(
            "search",
            f"{hits[0].score:.2f} {make_printable(hits[0].text)}" if hits else "not found by the query",
            is_well=bool(hits),
        ),
    ]
    if saved.decision != "saved":
        return [*steps, TrialStep("forget", f"kept: {saved.id} existed before", is_well=True)]
    forgotten = await memory.forget(user, saved.id)
    left = await memory.read(user, min_seq=forgotten.seen_seq)
    is_gone = not _has_fact(left.facts, saved.id)
    return [
        *steps,
        TrialStep(
            "forget", f"{saved.id} is removed" if is_gone else f"{saved.id} is still listed", is_well=is_gone
        ),
    ]


def _has_fact(facts: "Sequence[StoredFact]", fact_id: str) -> bool:
    return any(each.id == fact_id for each in facts)
