"""Actions of `mnemon rebuild`: rebuild, verify, swap back, make snapshots, list and drop generations."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from mnemon.cli.options.target import complete_command, open_deployment
from mnemon.cli.rebuild.replay_bar import ReplayBar, show_replay
from mnemon.cli.rebuild.verdict import show_verdict, verdict_to_json
from mnemon.cli.terminal.exit_code import ExitCode, refuse
from mnemon.cli.terminal.output import Figure, show_table
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon_infra.rebuild.generations import Site

_KINDS: Mapping[str, str] = {
    "live": "live",
    "former": "former",
    "next": "not live yet",
    "as of": "snapshot",
}


class RecoveredSite(NamedTuple):
    """The servers of a deployment, with the lock that excludes other rebuilds.

    Attributes:
        is_running: whether the servers ran before this command.
        has_completed_swap: whether this command has completed an interrupted swap.
    """

    site: "Site"
    is_running: bool
    progress: ReplayBar
    has_completed_swap: bool


@asynccontextmanager
async def open_recovered_site(data: Path | None) -> AsyncIterator[RecoveredSite]:
    """Exclude other rebuilds of the servers until the end of the block; first complete an interrupted swap.

    `NameTooLong` and the errors of the servers propagate.

    Raises:
        RebuildBlocked: another process rebuilds.
    """
    from mnemon.operations.rebuild.swap import swap_vectors
    from mnemon_infra.rebuild.generations import open_exclusive_site

    async with (
        open_deployment(data, "broker", "database") as servers,
        open_exclusive_site(servers.deployment) as site,
    ):
        with show_replay() as progress:
            has_completed_swap = await swap_vectors(site, progress)
            if has_completed_swap:
                progress.show_line("an interrupted swap is completed: the vectors are swapped")
            yield RecoveredSite(site, servers.is_running, progress, has_completed_swap)


async def rebuild_generation(data: Path | None, as_json: bool) -> ExitCode:
    """Rebuild a generation and swap it with the live one; if a swap was interrupted, only complete that swap.

    `NameTooLong` and the errors of the servers propagate.

    Raises:
        RebuildBlocked: another process rebuilds, a former generation exists, or another schema has the name
            of the new generation.
    """
    from mnemon.operations.rebuild.run import rebuild_generation
    from mnemon_infra.generation_names import name_generation

    async with open_recovered_site(data) as (site, _, progress, has_completed_swap):
        if has_completed_swap:
            show_result(
                as_json,
                {"live": site.live, "former": name_generation(site.live, "former")},
                f"{site.live} has the rebuilt rows and vectors.",
            )
            return ExitCode.DONE
        result = await rebuild_generation(site, progress)
    former, position, events, seconds, vector_seconds = result
    per_second = events / seconds
    indexed = "It has no vectors."
    if vector_seconds is not None:
        indexed = f"Its vectors were indexed in {vector_seconds:.1f} s."
    show_result(
        as_json,
        {
            "live": site.live,
            "former": former,
            "position": position,
            "events": events,
            "seconds": round(seconds, 3),
            "events_per_second": round(per_second),
            "vector_seconds": None if vector_seconds is None else round(vector_seconds, 3),
        },
        f"{format_count(events, 'event')} replayed into rows in {seconds:.1f} s, {per_second:,.0f} per"
        " second.\n"
        f"{site.live} has the rebuilt generation, up to position {position:,} and later.\n{indexed}\n"
        f"The former generation is {former}: `{complete_command('mnemon rebuild --back', data)}` returns to"
        f" it, `{complete_command('mnemon rebuild --drop before', data)}` drops it.",
    )
    return ExitCode.DONE


async def swap_back(data: Path | None, as_json: bool) -> ExitCode:
    """Make the former generation live again, with the events since the swap.

    `NameTooLong` and the errors of the servers propagate.

    Raises:
        RebuildBlocked: another process rebuilds, there is no former generation, another schema has its name,
            its schema has another revision, or mnemon runs while the former vectors are of another embedding
            model.
    """
    from mnemon.operations.rebuild.swap import open_former_generation, swap_rows, swap_vectors

    async with open_recovered_site(data) as (site, _, progress, _):
        async with open_former_generation(site, progress) as generation:
            await swap_rows(site, generation, progress)
        await swap_vectors(site, progress)
    rows, vectors = generation
    show_result(
        as_json,
        {"live": site.live, "former": rows.schema, "position": rows.reached, "vectors": vectors is not None},
        f"{site.live} has the former rows {'and vectors ' if vectors else ''}again, up to position"
        f" {rows.reached:,} and later. The generation that was live is {rows.schema} now.",
    )
    return ExitCode.DONE


async def verify_generation(data: Path | None, keep: bool, as_json: bool) -> ExitCode:
    """Compare the live generation with a generation rebuilt from the log.

    `NameTooLong` and the errors of the servers propagate.

    Raises:
        RebuildBlocked: another process rebuilds, or another schema has the name of the new generation.
    """
    from mnemon.operations.rebuild.generation_verification import GenerationVerification
    from mnemon.operations.rebuild.generations import open_generation
    from mnemon.operations.rebuild.live_vectors import open_live_pages
    from mnemon_infra.database.generations.generation_repository import drop_schema
    from mnemon_infra.models.words import bm25
    from mnemon_infra.rebuild.row_verification import SETTLE_WAIT
    from mnemon_infra.vectors.generations import drop_generation, locate_generation, read_model_record

    async with open_recovered_site(data) as (site, is_running, progress, _):
        made_by = await read_model_record(site.deployment)
        if made_by and made_by.terms != bm25.VERSION:
            progress.show_line(
                f"The live vectors have version {made_by.terms} of the term weights, the rebuilt ones "
                f"version {bm25.VERSION}, so words or vectors differ: run "
                f"`{complete_command('mnemon rebuild', data)}`, then verify again."
            )
        async with open_generation(site, "next", progress) as generation, open_live_pages(site) as live:
            patience = SETTLE_WAIT if is_running else 0
            verdict = await GenerationVerification(
                site, generation, live, progress, timeout_seconds=patience
            ).compare_all()
        schema = generation.rows.schema
        if not keep:
            await drop_generation(locate_generation(site.deployment, "next"))
            await drop_schema(site.database, schema)
    if as_json:
        typer.echo(json.dumps(verdict_to_json(verdict, schema if keep else None)))
    else:
        show_verdict(verdict, data)
        typer.echo(f"The rebuilt generation is {'kept as' if keep else 'dropped:'} {schema}.")
    return ExitCode.NEGATIVE_RESULT if verdict.differences else ExitCode.DONE


async def make_snapshot(data: Path | None, moment: int | datetime, as_json: bool) -> ExitCode:
    """Make a snapshot as of a log position or a time; end the command if the log has no such position.

    `NameTooLong` and the errors of the servers propagate.

    Raises:
        RebuildBlocked: another process rebuilds, or another schema has the name of the snapshot.
    """
    from mnemon.operations.rebuild.generations import open_generation
    from mnemon_infra.broker.streams.applied_position import find_first_event_from
    from mnemon_infra.broker.streams.stream_reader import find_position

    async with open_recovered_site(data) as (site, _, progress, _):
        up_to = moment if isinstance(moment, int) else await find_position(site.connection, moment)
        end = await site.load_log_end()
        if not up_to and (first := await find_first_event_from(site.connection.jetstream(), 1)):
            refuse(
                ExitCode.USAGE_ERROR,
                f"the log has no event before {first[1]:%Y-%m-%dT%H:%M:%SZ}",
                "Give a later position or time",
            )
        if not end:
            refuse(ExitCode.USAGE_ERROR, "the log is empty", "Publish events first")
        if not 0 < up_to <= end:
            refuse(
                ExitCode.USAGE_ERROR,
                f"the log has no position {up_to:,}",
                f"The log goes from 1 to {end:,}",
            )
        async with open_generation(site, "as of", progress, up_to) as generation:
            await generation.replay_to(up_to, progress)
            await generation.rows.apply_later_erasures()
    schema, what = generation.rows.schema, "rows and vectors" if generation.vectors else "rows"
    show_result(
        as_json,
        {"generation": schema, "position": up_to, "vectors": generation.vectors is not None},
        f"{schema} has the {what} as of position {up_to:,}: query it with `--as-of {up_to}`. Only"
        " erasures change it.\n"
        f"Remove it with `{complete_command(f'mnemon rebuild --drop {schema}', data)}`.",
    )
    return ExitCode.DONE


async def show_generations(data: Path | None, as_json: bool) -> ExitCode:
    """List all generations, with their kinds, positions and sizes."""
    from mnemon.operations.rebuild.listing import list_generations
    from mnemon.operations.rebuild.live_vectors import count_points
    from mnemon_infra.rebuild.generations import open_site

    async with open_deployment(data, "broker", "database") as servers, open_site(servers.deployment) as site:
        rows: list[dict[str, Any]] = [
            {
                "generation": each.generation.schema,
                "kind": each.generation.kind,
                "position": each.position,
                "complete": each.generation.is_complete,
                "bytes": each.generation.bytes,
                "points": await count_points(site, each.vectors),
                "vector_bytes": each.vector_bytes,
            }
            for each in await list_generations(site)
        ]
    if as_json:
        typer.echo(json.dumps(rows))
        return ExitCode.DONE
    show_table(
        ("generation", "kind", "up to position", "MB of rows", "points", "MB of vectors"),
        [
            (
                row["generation"],
                _KINDS[row["kind"]] + ("" if row["complete"] else ", not complete"),
                row["position"],
                _format_megabytes(row["bytes"]),
                "-" if row["points"] is None else row["points"],
                _format_megabytes(row["vector_bytes"]),
            )
            for row in rows
        ],
    )
    return ExitCode.DONE


async def drop_generation(data: Path | None, name: str, as_json: bool) -> ExitCode:
    """Remove a generation that is not live.

    `NameTooLong` and the errors of the servers propagate.

    Raises:
        NoSuchGeneration: no generation has this name.
        RebuildBlocked: another process rebuilds, the generation is live, or no rebuild has made the schema of
            this name.
    """
    from mnemon.operations.rebuild.listing import remove_generation

    async with open_recovered_site(data) as (site, _, _, _):
        schema = await remove_generation(site, name)
    show_result(as_json, {"dropped": schema}, f"{schema} is removed.")
    return ExitCode.DONE


def _format_megabytes(number: int | None) -> Figure | str:
    return "-" if number is None else Figure(f"{number / 1e6:,.1f}")


def show_result(as_json: bool, values: Mapping[str, Any], words: str) -> None:
    """Print the result of an action: with `as_json`, `values` as JSON; otherwise, `words`."""
    typer.echo(json.dumps(values) if as_json else words)
