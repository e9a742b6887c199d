"""Command `mnemon bench`: measure the speed, the quality and the growth of mnemon."""

import json
import logging
import tempfile
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.options.target import load_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_command, refuse, refuse_file
from mnemon.cli.terminal.output import JsonOption, show_table

if TYPE_CHECKING:
    from mnemon_bench.quality.recall import LabelledConversations


SOAK_HOURS = 2.0
"""Default duration of the soak, in hours."""


class BenchName(StrEnum):
    """Names of the benches."""

    PUBLISH = "publish"
    INGEST = "ingest"
    RETRIEVE = "retrieve"
    SEARCHABLE = "searchable"
    SEARCH = "search"
    DEDUPE = "dedupe"
    CONTEXT = "context"
    RECALL = "recall"
    COST = "cost"
    EXTRACT = "extract"
    COMPACT = "compact"
    FRONT = "front"
    REBUILD = "rebuild"
    FAIRNESS = "fairness"
    GATEWAY = "gateway"
    SCALE = "scale"
    SECRETS = "secrets"
    DEDUPE_QUALITY = "dedupe-quality"
    SOAK = "soak"


def bench(
    name: Annotated[
        BenchName,
        typer.Argument(
            metavar="NAME", show_choices=False, help="Bench to run: " + ", ".join(BenchName) + "."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            help="Input of the benches recall, secrets and dedupe-quality. For recall: a file, or a folder "
            "of files, with conversations in the LoCoMo format. For secrets: labelled sentences; for "
            "dedupe-quality: labelled pairs of facts; both with one JSON object per line. Default: the "
            "Russian conversations, the labelled sentences and the labelled pairs that mnemon contains.",
        ),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(
            metavar="HOURS", min=0.01, help="Duration of the soak, in hours. Default: 2.", show_default=False
        ),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the samples of the soak, as JSON lines; the plot is written next to it, with the "
            "suffix .svg. Default: soak.jsonl.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure mnemon on temporary servers.

    Benches of speed alternate with a reference, such as a bare loop that does the same work without mnemon.
    Compare the ratios, which are valid on a slow machine, too. The benches `secrets` and `dedupe-quality`
    start no servers.

    The bench `soak` runs a mixed load for hours on one data folder, and fails if memory, disk use, rows,
    messages, files, connections, threads or processes keep growing. If MNEMON_QDRANT_URL names a Qdrant
    server, the other benches store vectors on that server, each in its own collections, which are deleted at
    the end.

    Exits with code 1 if a target is missed.

    Example: `mnemon bench ingest --json`
    """
    if name is not BenchName.SOAK and (hours is not None or samples is not None):
        refuse(ExitCode.USAGE_ERROR, "only the bench soak accepts --hours and --samples: leave them out")
    if name is BenchName.SECRETS:
        perform_command(_bench_secrets(data, as_json))
        return
    if name is BenchName.DEDUPE_QUALITY:
        perform_command(_bench_dedupe_quality(data, as_json))
        return
    if data is not None and name is not BenchName.RECALL:
        refuse(
            ExitCode.USAGE_ERROR,
            "only the benches recall (conversations), secrets (sentences) and dedupe-quality (pairs) accept "
            "--data: leave it out",
        )
    if name is BenchName.SOAK:
        perform_command(
            _bench_soak(hours or SOAK_HOURS, _create_file(samples or Path("soak.jsonl")), as_json)
        )
        return
    conversations = _load_conversations(data) if name is BenchName.RECALL else None
    perform_command(_run_bench(name, conversations, as_json))


def _create_file(path: Path) -> Path:
    try:
        path.touch()
    except OSError as error:
        refuse_file(path, "written", error, "Choose another file")
    return path


def _load_conversations(path: Path | None) -> "LabelledConversations":
    from mnemon_bench.quality.recall import load_conversations, load_russian_conversations
    from mnemon_producers.locomo import NotLocomo

    if path is None:
        return load_russian_conversations()
    try:
        return load_conversations(path)
    except OSError as error:
        refuse_file(path, "read", error)
    except NotLocomo as error:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{path} cannot be used: {error}",
            "Give a file or a folder of files in the LoCoMo format, with questions",
        )


async def _bench_secrets(path: Path | None, as_json: bool) -> ExitCode:
    """Measure the detection of secrets, without servers; end the command if the sentences are invalid."""
    from mnemon_bench.quality import secrets

    try:
        sentences = secrets.read_sentences(path or secrets.LIST)
    except secrets.InvalidSentences as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
    measured = secrets.run(sentences, report=_print_progress)
    return _report_figures(measured, as_json)


async def _bench_dedupe_quality(path: Path | None, as_json: bool) -> ExitCode:
    """Measure the decisions of `dedupe`, without servers; end the command if the pairs are invalid."""
    from mnemon_bench.quality import calibration, dedupe_quality
    from mnemon_infra.models.embedders.wordllama import load_wordllama

    try:
        pairs = calibration.read_pairs(path or calibration.PAIRS)
    except calibration.InvalidPairs as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
    measured = await dedupe_quality.run(pairs, load_wordllama(), report=_print_progress)
    if not as_json:
        _show_confusion(measured.pop("languages"))
    return _report_figures(measured, as_json)


async def _bench_soak(hours: float, samples: Path, as_json: bool) -> ExitCode:
    """Run the soak on temporary servers, write its samples and its plot, and report how each series grew."""
    from mnemon_bench.soak import run, sparkline_sheet
    from mnemon_bench.soak.trend import TooFewSamples
    from mnemon_infra.config import Deployment
    from mnemon_infra.embedded.stack import run_stack
    from mnemon_infra.telemetry.logging import configure_logging

    configure_logging(level=logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="mnemon-bench-") as folder:
        async with run_stack(Path(folder), Deployment.model_construct()) as stack:
            try:
                measured = await run.run(
                    stack.deployment, Path(folder), hours=hours, samples=samples, report=_print_progress
                )
            except TooFewSamples as error:
                refuse(ExitCode.NEGATIVE_RESULT, str(error))
    sparkline_sheet.write_sheet(samples.with_suffix(".svg"), run.read_samples(samples))
    if not as_json:
        _show_trends(measured.pop("trends"))
    return _report_figures(measured, as_json)


def _print_progress(line: str) -> None:
    typer.echo(line, err=True)


def _report_figures(measured: dict[str, Any], as_json: bool) -> ExitCode:
    if as_json:
        typer.echo(json.dumps(measured))
    else:
        _show_figures(measured)
    return ExitCode.NEGATIVE_RESULT if any(_find_missed(measured)) else ExitCode.DONE


async def _run_bench(name: BenchName, data: "LabelledConversations | None", as_json: bool) -> ExitCode:
    from mnemon_bench import cost
    from mnemon_bench.latency import context, fairness, gateway, retrieve, search
    from mnemon_bench.latency import foreground as front
    from mnemon_bench.quality import recall
    from mnemon_bench.throughput import compact, dedupe, extract, ingest, publish, rebuild, scale, searchable
    from mnemon_infra.config import Deployment
    from mnemon_infra.embedded.stack import run_stack
    from mnemon_infra.telemetry.logging import configure_logging
    from mnemon_infra.vectors.temporary_vectors import reserve_vectors

    benches: dict[BenchName, Callable[..., Awaitable[dict[str, Any]]]] = {
        BenchName.INGEST: ingest.run,
        BenchName.RETRIEVE: retrieve.run,
        BenchName.SEARCHABLE: searchable.run,
        BenchName.SEARCH: search.run,
        BenchName.DEDUPE: dedupe.run,
        BenchName.CONTEXT: context.run,
        BenchName.COST: cost.run,
        BenchName.EXTRACT: extract.run,
        BenchName.COMPACT: compact.run,
        BenchName.FRONT: front.run,
        BenchName.REBUILD: rebuild.run,
        BenchName.FAIRNESS: fairness.run,
        BenchName.GATEWAY: gateway.run,
        BenchName.SCALE: scale.run,
    }
    configure_logging(level=logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="mnemon-bench-") as folder:
        # Ignore the other servers of the environment: they may be production servers.
        async with (
            reserve_vectors(load_deployment(), "mnemon_bench") as vectors,
            run_stack(Path(folder), Deployment.model_construct(**vectors.configuration)) as stack,
        ):
            match name:
                case BenchName.PUBLISH:
                    measured = await publish.run(str(stack.deployment.nats_url))
                case BenchName.RECALL:
                    assert data is not None
                    measured = await recall.run(stack.deployment, data, report=_print_progress)
                case _:
                    measured = await benches[name](stack.deployment, report=_print_progress)
    return _report_figures({"vectors": vectors.engine, **measured}, as_json)


def _select_figures(measured: dict[str, Any]) -> dict[str, float]:
    """Return the ratios, and the other figures that have a target."""
    aimed_at = [name for bounds in measured["targets"].values() for name in bounds]
    raw = {name: measured[name] for name in aimed_at if name not in measured["ratios"]}
    figures: dict[str, float] = raw | measured["ratios"]
    return figures


def _find_missed(measured: dict[str, Any]) -> list[str]:
    """Return the names of figures that miss their target: below `at_least`, or above `at_most`."""
    figures, targets = _select_figures(measured), measured["targets"]
    too_low = [name for name, bound in targets.get("at_least", {}).items() if figures[name] < bound]
    too_high = [name for name, bound in targets.get("at_most", {}).items() if figures[name] > bound]
    return too_low + too_high


def _show_figures(measured: dict[str, Any]) -> None:
    figures, missed = _select_figures(measured), _find_missed(measured)
    bounds = {
        name: f"{words} {bound:,}"
        for words, targets in (
            ("at least", measured["targets"].get("at_least", {})),
            ("at most", measured["targets"].get("at_most", {})),
        )
        for name, bound in targets.items()
    }
    show_table(
        ("figure", "measured", "target", ""),
        [
            (name, f"{figure:,.2f}", bounds.get(name, ""), "missed" if name in missed else "")
            for name, figure in figures.items()
        ],
    )
    typer.echo()
    if "methods" in measured:
        _show_methods(measured["methods"])
    if "growth" in measured:
        _show_growth(measured["growth"])
    for name, value in measured.items():
        if name not in ("ratios", "targets", "methods", "growth") and name not in figures:
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            typer.echo(f"{name}: {shown}")


def _show_methods(methods: dict[str, dict[str, Any]]) -> None:
    """Show the results of each method: over all questions that have an answer, by category, by language."""
    columns = "recall@5", "recall@10", "recall@20", "hit@10", "mrr"
    rows = []
    for name, found in methods.items():
        taken = found["milliseconds"]
        rows.append((name, "1-4", *(f"{found[each]:.3f}" for each in columns), taken["p50"], taken["p99"]))
        for group, part in (found["categories"] | found["languages"]).items():
            rows.append(("", group, *(f"{part[each]:.3f}" for each in columns), "", ""))
    show_table(("method", "questions", *columns, "p50 ms", "p99 ms"), rows)
    typer.echo()


def _show_confusion(languages: dict[str, dict[str, dict[str, int]]]) -> None:
    """Show the decisions on pairs: a row for each language and label."""
    outcomes = list(next(iter(next(iter(languages.values())).values())))
    rows = [
        (language, label, *(str(counts[outcome]) for outcome in outcomes))
        for language, table in languages.items()
        for label, counts in table.items()
    ]
    show_table(("language", "labelled", *outcomes), rows)
    typer.echo()


def _show_trends(trends: dict[str, dict[str, float]]) -> None:
    """Show level, growth and bound of each series of a soak."""
    show_table(
        ("series", "level", "growth", "bound"),
        [
            (name, *(f"{trend[column]:,.2f}" for column in ("level", "growth", "bound")))
            for name, trend in trends.items()
        ],
    )
    typer.echo()


def _show_growth(stages: list[dict[str, int]]) -> None:
    """Show messages, context tokens, summaries and uncompacted messages of a conversation as it grows."""
    columns = "messages", "context_tokens", "summaries", "uncompacted"
    rows = [tuple(str(stage[column]) for column in columns) for stage in stages]
    show_table(tuple(column.replace("_", " ") for column in columns), rows)
    typer.echo()
