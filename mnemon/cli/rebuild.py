"""`mnemon rebuild`."""

import json
from collections.abc import Coroutine, Mapping
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from mnemon.cli.ending import Ending, perform, refuse
from mnemon.cli.moment import moment
from mnemon.cli.output import Figure, JsonOption, show_table
from mnemon.cli.target import DataOption, target
from mnemon.cli.verdict import as_json_value, show_verdict

if TYPE_CHECKING:
    from infra.config import Deployment

_KINDS: Mapping[str, str] = {
    "live": "in use",
    "former": "in use before",
    "next": "being rebuilt",
    "as of": "as of then",
}


def rebuild(
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare with what is live, row for row, and switch nothing.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="With --verify: what was rebuilt stays, for the next rebuild.")
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="SEQ|TIME",
            help="Beside what is live, make a generation as of a log position, or a time such as"
            " 2026-11-21T10:00:00Z.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the generations that are there.")] = False,
    back: Annotated[
        bool, typer.Option("--back", help="Put the former generation back, with what came since.")
    ] = False,
    drop: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Remove a generation that --list names, such as `before`."),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make all rows anew from the log, beside those that are in use, and then switch.

    Bots notice nothing: readers are served throughout, and no model is asked. Run it again after it was
    interrupted, and it goes on from where it was. The former rows stay until `--drop before`.

    Example: `mnemon rebuild --verify --data ./memory`
    """
    chosen = [verify, until is not None, show, back, drop is not None]
    if sum(chosen) > 1:
        refuse(Ending.WRONG_USE, "one of --verify, --until, --list, --back and --drop at a time")
    if keep and not verify:
        refuse(Ending.WRONG_USE, "--keep goes with --verify")
    deployment = target(data, "broker", "database")
    if show:
        _perform(_list(deployment, as_json))
    if drop is not None:
        _perform(_drop(deployment, drop, as_json))
    if until is not None:
        _perform(_until(deployment, moment("--until", until), as_json))
    if verify:
        _perform(_verify(deployment, keep, as_json))
    _perform(_back(deployment, as_json) if back else _rebuild(deployment, as_json))


def _perform(work: "Coroutine[Any, Any, Ending]") -> NoReturn:
    perform(_unhindered(work))


async def _unhindered(work: "Coroutine[Any, Any, Ending]") -> Ending:
    from infra.database.generations import NameTooLong
    from infra.rebuilding.making import InTheWay

    try:
        return await work
    except InTheWay as error:
        refuse(Ending.WRONG_USE, str(error), error.next_step)
    except NameTooLong as error:
        refuse(Ending.WRONG_USE, str(error), "Choose a shorter MNEMON_DATABASE_SCHEMA")


async def _rebuild(deployment: "Deployment", as_json: bool) -> Ending:
    from infra.database.generations import name_of
    from infra.rebuilding.making import InTheWay, catch_up, made, site_alone, take_over
    from mnemon.cli.replaying import watched

    async with site_alone(deployment) as place:
        former = name_of(place.live, "former")
        if await place.found(former):
            raise InTheWay(
                f"the former generation, {former}, is still there",
                "Drop it: mnemon rebuild --drop before. Or go back to it: mnemon rebuild --back",
            )
        with watched() as progress:
            async with made(place, "next", progress) as replay:
                first, begun = replay.reached, perf_counter()
                await catch_up(place, replay, progress)
                seconds = perf_counter() - begun
                await take_over(place, replay, progress)
    events = replay.reached - first
    _tell(
        as_json,
        {
            "live": place.live,
            "former": former,
            "position": replay.reached,
            "events": events,
            "seconds": round(seconds, 3),
            "events_per_second": round(events / seconds),
        },
        f"{events:,} events replayed in {seconds:.1f} s, {events / seconds:,.0f} a second.\n"
        f"{place.live} has what was rebuilt, up to position {replay.reached:,} and on. The former rows are in"
        f" {former}:\n`mnemon rebuild --back` goes back to them, `mnemon rebuild --drop before` drops them.",
    )
    return Ending.DONE


async def _back(deployment: "Deployment", as_json: bool) -> Ending:
    from infra.rebuilding.making import former, site_alone, take_over
    from mnemon.cli.replaying import watched

    async with site_alone(deployment) as place:
        with watched() as progress:
            async with former(place) as replay:
                await take_over(place, replay, progress)
    _tell(
        as_json,
        {"live": place.live, "former": replay.schema, "position": replay.reached},
        f"{place.live} has the former rows again, up to position {replay.reached:,} and on. The others are in"
        f" {replay.schema} now.",
    )
    return Ending.DONE


async def _verify(deployment: "Deployment", keep: bool, as_json: bool) -> Ending:
    from infra.database.generations import drop
    from infra.rebuilding.making import made, site_alone
    from infra.rebuilding.verifying import Verifying
    from mnemon.cli.replaying import watched

    async with site_alone(deployment) as place:
        with watched() as progress:
            async with made(place, "next", progress) as replay:
                verdict = await Verifying(place, replay, progress).verdict()
        if not keep:
            await drop(place.database, replay.schema)
    if as_json:
        typer.echo(json.dumps(as_json_value(verdict, replay.schema if keep else None)))
    else:
        show_verdict(verdict)
        typer.echo(f"What was rebuilt is {'kept as' if keep else 'dropped:'} {replay.schema}.")
    return Ending.NOT_SO if verdict.differences else Ending.DONE


async def _until(deployment: "Deployment", until: int | datetime, as_json: bool) -> Ending:
    from infra.broker.stream_reader import position_at
    from infra.rebuilding.making import made, site_alone
    from mnemon.cli.replaying import watched

    async with site_alone(deployment) as place:
        up_to = until if isinstance(until, int) else await position_at(place.connection, until)
        end = await place.log_end()
        if not 0 < up_to <= end:
            refuse(
                Ending.WRONG_USE,
                f"there is nothing to show as of position {up_to:,}",
                f"The log goes from 1 to {end:,}" if end else "The log is empty",
            )
        with watched() as progress:
            async with made(place, "as of", progress, up_to) as replay:
                await replay.reach(up_to, lambda reached: progress.at(reached, up_to))
    _tell(
        as_json,
        {"generation": replay.schema, "position": up_to},
        f"{replay.schema} has the rows as of position {up_to:,}: ask with `--as-of {up_to}`. Nothing writes"
        f" there;\nremove it with `mnemon rebuild --drop {replay.schema}`.",
    )
    return Ending.DONE


async def _list(deployment: "Deployment", as_json: bool) -> Ending:
    from infra.rebuilding.making import site

    async with site(deployment) as place:
        found = [each for each in await place.generations() if each.is_made_here]
        applied = await place.applied()
    rows = [
        {
            "generation": each.schema,
            "kind": each.kind,
            "position": applied if each.kind == "live" else each.reached,
            "complete": each.is_complete,
            "bytes": each.bytes,
        }
        for each in found
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return Ending.DONE
    show_table(
        ("generation", "what it is", "up to position", "MB"),
        [
            (
                row["generation"],
                _KINDS[str(row["kind"])] + ("" if row["complete"] else ", not complete"),
                row["position"],
                Figure(f"{each.bytes / 1e6:,.1f}"),
            )
            for row, each in zip(rows, found, strict=True)
        ],
    )
    return Ending.DONE


async def _drop(deployment: "Deployment", name: str, as_json: bool) -> Ending:
    from infra.database.generations import drop
    from infra.rebuilding.making import site_alone

    async with site_alone(deployment) as place:
        found = await place.found(name) or await place.found(f"{place.live}_{name}")
        if found is None or found.kind == "live":
            refuse(
                Ending.WRONG_USE,
                f"{name} is live" if found else f"there is no generation {name!r}",
                "See what there is: mnemon rebuild --list",
            )
        await drop(place.database, found.schema)
    _tell(as_json, {"dropped": found.schema}, f"{found.schema} is removed.")
    return Ending.DONE


def _tell(as_json: bool, values: Mapping[str, Any], words: str) -> None:
    typer.echo(json.dumps(values) if as_json else words)
