"""Command `mnemon calibrate`: find similarity thresholds for an embedding model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mnemon.cli.options.target import (
    DataOption,
    complete_command,
    load_deployment,
    open_broker,
    require_deployment,
)
from mnemon.cli.terminal.exit_code import ExitCode, perform_async, refuse
from mnemon.cli.terminal.output import JsonOption, show_json, show_table

if TYPE_CHECKING:
    from mnemon_contracts.settings.groups import Embedding
    from mnemon_infra.config import Deployment

SHOWN_STEP = 0.05


@perform_async
async def calibrate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Labelled pairs of facts, one JSON object per line.")
    ],
    provider: Annotated[
        Literal["wordllama", "openai", "fastembed"] | None,
        typer.Option(
            metavar="PROVIDER",
            help="Provider of the embedding model: wordllama, openai or fastembed. Default: the provider in "
            "the settings; without a configured NATS server, wordllama.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model of the provider. Default: the model in the settings; with --provider, the default "
            "model of the provider."
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Find, for an embedding model, the similarities above which a fact repeats or updates another.

    Each line of the file is `{"a": ..., "b": ..., "label": ..., "language": ...}`; the label is `same`,
    `update` or `different`. Pairs that the rules of `dedupe` decide are left out. Precision and recall count
    `same` and `update` as positive; for the recommended duplicate threshold, only `same` counts as positive.

    Example: `mnemon calibrate bench/mnemon_bench/quality/datasets/pairs.jsonl`
    """
    from mnemon_bench.quality.calibration import InvalidPairs, calibrate_embedder, read_pairs
    from mnemon_infra.models.embedders.embedder_choice import open_embedder
    from mnemon_infra.models.embedding import EmbeddingNotConfigured, EmbeddingUnavailable
    from mnemon_infra.telemetry.logging import configure_logging

    try:
        pairs = read_pairs(file)
    except InvalidPairs as error:
        refuse(ExitCode.USAGE_ERROR, str(error))
    deployment = load_deployment() if data is None else require_deployment(data, "broker")
    configure_logging()
    settings = await _choose_embedding(deployment, provider, model)
    try:
        async with open_embedder(settings, deployment) as embedder:
            if embedder is None:
                refuse(
                    ExitCode.USAGE_ERROR,
                    "the settings name no embedding model",
                    "Give a provider: --provider NAME",
                )
            measured = await calibrate_embedder(embedder, pairs)
    except InvalidPairs as error:
        refuse(ExitCode.USAGE_ERROR, f"{file}: {error}")
    except (EmbeddingNotConfigured, EmbeddingUnavailable) as error:
        refuse(ExitCode.UNAVAILABLE, str(error))
    if as_json:
        show_json(measured)
    else:
        _show_thresholds(measured, data)
    return ExitCode.DONE


async def _choose_embedding(deployment: "Deployment", provider: str | None, model: str | None) -> "Embedding":
    from mnemon_contracts.settings.groups import Embedding
    from mnemon_infra.settings.store import read_settings

    if provider is not None:
        return Embedding.create_strict(provider=provider, model=model)
    usual = Embedding()
    if deployment.nats_url:
        async with open_broker(deployment, "mnemon-calibrate") as connection:
            usual = (await read_settings(connection)).embedding
    return usual if model is None else Embedding.create_strict(provider=usual.provider, model=model)


def _show_thresholds(measured: dict[str, Any], data: Path | None) -> None:
    typer.echo(f"{measured['model']}, {measured['pairs']} pairs")
    rows: list[tuple[object, ...]] = []
    for language, found in measured["languages"].items():
        marked = {found["best_f1"]["threshold"]: "best F1"} if found["best_f1"] else {}
        if found["precise"]:
            marked[found["precise"]["threshold"]] = f"precision {measured['precision']}"
        for point in found["curve"]:
            threshold = point["threshold"]
            if threshold in marked or round(threshold / SHOWN_STEP, 6).is_integer():
                figures = (f"{point[name]:.2f}" for name in ("threshold", "precision", "recall", "f1"))
                rows.append((language, *figures, marked.get(threshold, "")))
    show_table(("language", "above", "precision", "recall", "F1", ""), rows)
    recommended = measured["recommended"]
    if recommended is None:
        _show_languages_without_threshold(measured, data)
        return
    typer.echo("\nThresholds that reach the precision in every language:\n")
    command = (
        f"mnemon settings set dedupe.update_threshold={recommended['update']}"
        f" dedupe.duplicate_threshold={recommended['duplicate']}"
    )
    typer.echo(f"  {complete_command(command, data)}")


def _show_languages_without_threshold(measured: dict[str, Any], data: Path | None) -> None:
    languages = [
        language
        for language, found in measured["languages"].items()
        if language != "all" and found["precise"] is None
    ]
    typer.echo(
        f"\nNo threshold separates the pairs in: {', '.join(languages)}. To merge no facts by similarity:"
    )
    command = "mnemon settings set dedupe.update_threshold=1 dedupe.duplicate_threshold=1"
    typer.echo(f"\n  {complete_command(command, data)}\n")
    typer.echo(
        "The defaults of wordllama do so in all languages but English: with wordllama, keep the defaults."
    )
    typer.echo("To find thresholds for other languages, calibrate with their pairs alone.")
