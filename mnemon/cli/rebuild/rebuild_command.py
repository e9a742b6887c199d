"""Command `mnemon rebuild`: choose an action on generations by options."""

from collections.abc import Coroutine
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from mnemon.cli.options.moment import parse_moment
from mnemon.cli.options.target import DataOption
from mnemon.cli.rebuild import actions
from mnemon.cli.rebuild import redecide as redeciding
from mnemon.cli.rebuild import reembed as reembedding
from mnemon.cli.terminal.exit_code import ExitCode, perform_command, refuse
from mnemon.cli.terminal.output import JsonOption
from mnemon.display_text import format_data_option

_REDECIDE = "--redecide"


class RebuildCommand(TyperCommand):
    """Command whose option `--redecide` also works without a value; Typer has no such options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the value `current` after a `--redecide` without a value, then parse the arguments."""
        completed = list[str]()
        for argument, following in zip_longest(args, args[1:]):
            completed.append(argument)
            if argument == _REDECIDE and (following is None or following.startswith("-")):
                completed.append(redeciding.CURRENT)
        return super().parse_args(ctx, completed)


def rebuild(
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Rebuild a generation and compare it with the live one, row by row and vector by vector, "
            "without a swap.",
        ),
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="With --verify: keep the rebuilt generation for the next rebuild. Default: drop it.",
        ),
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="SEQ|TIME",
            help="Make a snapshot next to the live generation, as of a log position or a time such "
            "as 2026-11-21T10:00:00Z.",
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the generations.")] = False,
    back: Annotated[
        bool,
        typer.Option(
            "--back",
            help="Apply the events since the swap to the former generation, and swap it with the live one.",
        ),
    ] = False,
    drop: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Drop a generation that --list shows, by its whole name, such as `mnemon_before`, or by "
            "the suffix that follows the live generation's name, such as `before`.",
        ),
    ] = None,
    reembed: Annotated[
        str | None,
        typer.Option(
            metavar="PROVIDER[/MODEL]",
            help="While mnemon is stopped: index the log with another embedding model, show the pairs of "
            "facts on which `dedupe` would decide differently, and swap after confirmation.",
        ),
    ] = None,
    redecide: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=VALUE]",
            help="Decide again which of the kept facts repeat or update others: show the changes, and "
            "make them after confirmation. Without a value, apply the rules of this version and the "
            "settings in force. With a setting of the group `dedupe`, such as "
            "dedupe.update_threshold=0.8, also change that setting. Repeat the option for "
            "several settings.",
        ),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="With --reembed or --redecide: make the changes without asking for confirmation."
        ),
    ] = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild all rows and vectors from the log into a new generation, and swap it with the live one.

    Bots are served throughout, except with `--reembed`, and no language model is asked. An interrupted
    rebuild continues when the command runs again. The former generation stays until `--drop before`. With
    --data, the command also works on a stopped stack.

    Exits with code 1 if `--verify` finds a difference, or no generation has the name of `--drop`.

    Example: `mnemon rebuild --verify --data ./memory`
    """
    chosen = [verify, until is not None, show, back, drop is not None, reembed is not None, bool(redecide)]
    if sum(chosen) > 1:
        refuse(
            ExitCode.USAGE_ERROR,
            "several actions are named: give only one of --verify, --until, --list, --back, --drop, "
            "--reembed and --redecide",
        )
    if keep and not verify:
        refuse(
            ExitCode.USAGE_ERROR,
            "--keep works only together with --verify: add --verify, or leave --keep out",
        )
    if yes and reembed is None and not redecide:
        refuse(
            ExitCode.USAGE_ERROR,
            "--yes works only together with --reembed or --redecide: add one of them, or leave --yes out",
        )
    if redecide:
        _perform_action(data, redeciding.redecide(data, redecide, yes, as_json))
    if reembed is not None:
        _perform_action(data, reembedding.reembed(data, reembed, yes, as_json))
    if show:
        _perform_action(data, actions.show_generations(data, as_json))
    if drop is not None:
        _perform_action(data, actions.drop_generation(data, drop, as_json))
    if until is not None:
        _perform_action(data, actions.make_snapshot(data, parse_moment("--until", until), as_json))
    if verify:
        _perform_action(data, actions.verify_generation(data, keep, as_json))
    if back:
        _perform_action(data, actions.swap_back(data, as_json))
    _perform_action(data, actions.rebuild_generation(data, as_json))


def _perform_action(data: Path | None, work: "Coroutine[Any, Any, ExitCode]") -> NoReturn:
    perform_command(_run_action(data, work))


async def _run_action(data: Path | None, work: "Coroutine[Any, Any, ExitCode]") -> ExitCode:
    from mnemon_infra.generation_names import NameTooLong
    from mnemon_infra.rebuild.generations import NoSuchGeneration, RebuildBlocked

    try:
        return await work
    except NoSuchGeneration as error:
        refuse(ExitCode.NEGATIVE_RESULT, str(error), error.describe_next_step(format_data_option(data)))
    except RebuildBlocked as error:
        refuse(ExitCode.USAGE_ERROR, str(error), error.describe_next_step(format_data_option(data)))
    except NameTooLong as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
