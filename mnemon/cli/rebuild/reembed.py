"""Action of `mnemon rebuild --reembed`: make new vectors with another embedding model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mnemon.cli.options.target import complete_command
from mnemon.cli.rebuild.actions import open_recovered_site, show_result
from mnemon.cli.terminal.exit_code import ExitCode, refuse
from mnemon.cli.terminal.output import Figure, show_table
from mnemon.cli.terminal.prompt import ask_confirmation, can_ask
from mnemon.display_text import format_count

if TYPE_CHECKING:
    from mnemon.operations.rebuild.reembed import ReembedPreview
    from mnemon_contracts.settings.groups import Embedding
    from mnemon_infra.vectors.vector_index import VectorIndex


async def reembed(data: Path | None, text: str, is_confirmed: bool, as_json: bool) -> ExitCode:
    """Embed all texts with another model, show pairs of facts judged differently, and swap if confirmed.

    `NameTooLong` and the errors of servers and models propagate.

    Raises:
        RebuildBlocked: another process rebuilds, mnemon runs, there are no vectors, a former generation
            exists, or another schema has the name of the new generation.
    """
    from mnemon.operations.rebuild.embedding import choose_embedding, is_embedder_running
    from mnemon.operations.rebuild.generations import open_generation
    from mnemon.operations.rebuild.reembed import ReembedPreview, preview_verdicts
    from mnemon.operations.rebuild.run import require_no_former_generation
    from mnemon.operations.rebuild.swap import swap_rows, swap_vectors
    from mnemon_infra.rebuild.generations import RebuildBlocked
    from mnemon_infra.vectors.embedding_metadata import EmbeddingMetadata
    from mnemon_infra.vectors.generations import has_vectors, read_model_record
    from mnemon_infra.vectors.vector_index import open_index

    embedding = _parse_embedding(text)
    async with open_recovered_site(data) as (site, _, progress, _):
        if not await has_vectors(site.deployment):
            arguments = EmbeddingMetadata(model=text, dimension=None).settings_arguments
            command = complete_command(f"mnemon settings set {arguments}", data)
            start = complete_command("mnemon up --only persist", data)
            condition = f"While `{start}` runs in another terminal, set" if data else "Set"
            raise RebuildBlocked("no vectors exist yet", f"{condition} the model: {command}")
        if await is_embedder_running(site, progress):
            command = complete_command(f"mnemon rebuild --reembed {text}", data)
            raise RebuildBlocked(
                "mnemon is running and uses the embedding model that it started with",
                f"Stop mnemon, then run: {command}"
                + ("" if data else ", with --data DIR for the stack of a folder"),
            )
        await require_no_former_generation(site)
        async with open_generation(site, "next", progress, embedding=embedding) as generation:
            assert generation.vectors, "the live generation has vectors"
            await generation.replay_to_end(site, progress)
            rebuilt = generation.vectors.index
            former = await choose_embedding(site, site.deployment)
            async with open_index(site.deployment, former) as live:
                shown = ReembedPreview(_name_model(live), _name_model(rebuilt), await _count_points(rebuilt))
                await preview_verdicts(site, live, rebuilt, shown)
            if not as_json:
                _show_preview(shown)
            if not (is_confirmed or await _confirm_swap(as_json)):
                _show_unswapped(shown, generation.rows.schema, text, data, as_json)
                return ExitCode.DONE
            await swap_rows(site, generation, progress)
        await swap_vectors(site, progress)
        made_by = await read_model_record(site.deployment)
    show_result(
        as_json,
        {**_preview_to_json(shown), "switched": True},
        f"The vectors are those of {made_by}, and the settings name it."
        f" `{complete_command('mnemon rebuild --back', data)}`, on a stopped stack, returns to the former"
        f" ones; `{complete_command('mnemon rebuild --drop before', data)}` drops them.",
    )
    return ExitCode.DONE


def _parse_embedding(text: str) -> "Embedding":
    from pydantic import ValidationError

    from mnemon_contracts.base import describe_problem
    from mnemon_contracts.settings.groups import Embedding
    from mnemon_infra.vectors.embedding_metadata import split_model_name

    provider, model = split_model_name(text)
    try:
        return Embedding.model_validate({"provider": provider, "model": model})
    except ValidationError as error:
        problem = describe_problem(error.errors(include_url=False)[0])
        refuse(
            ExitCode.USAGE_ERROR,
            f"--reembed {text!r}: {problem}",
            "For example: wordllama, openai/MODEL, none",
        )


def _name_model(vector_index: "VectorIndex") -> str:
    model = vector_index.embedder
    return f"{model.model} ({model.dimension} dimensions)" if model else "none (words only)"


async def _count_points(vector_index: "VectorIndex") -> int:
    from mnemon_infra.vectors.port import Collection

    return sum([await vector_index.vectors.count(each) for each in Collection])


async def _confirm_swap(as_json: bool) -> bool:
    return can_ask(as_json=as_json) and await ask_confirmation("Swap in these vectors?")


def _show_unswapped(
    preview: "ReembedPreview", schema: str, text: str, data: Path | None, as_json: bool
) -> None:
    show_result(
        as_json,
        {**_preview_to_json(preview), "switched": False},
        f"Nothing was swapped. The new generation is kept as {schema}:"
        f" `{complete_command(f'mnemon rebuild --reembed {text} --yes', data)}` swaps it in,"
        f" `{complete_command('mnemon rebuild --drop next', data)}` drops it.",
    )


def _preview_to_json(preview: "ReembedPreview") -> dict[str, Any]:
    return {
        "model": preview.model,
        "new_model": preview.new_model,
        "points": preview.points,
        "facts": preview.facts,
        "pairs": preview.pairs,
        "changes": [
            {"verdict": was, "new_verdict": will_be, "pairs": count}
            for (was, will_be), count in sorted(preview.changes.items())
        ],
        "first": [each._asdict() for each in preview.first],
    }


def _show_preview(preview: "ReembedPreview") -> None:
    typer.echo(f"from {preview.model} to {preview.new_model}: {format_count(preview.points, 'point')}")
    facts, pairs = format_count(preview.facts, "fact"), format_count(preview.pairs, "pair")
    typer.echo(f"{facts}; {pairs} compared, each of two facts of the same user.")
    if not preview.changes:
        typer.echo("Dedupe would decide the same for all pairs.")
        return
    typer.echo("If these facts were proposed now, dedupe would decide differently on these pairs:")
    changes = sorted(preview.changes.items())
    show_table(("former model", "new model", "pairs"), [(*each, count) for each, count in changes])
    typer.echo("")
    show_table(
        ("user", "fact", "fact", "similarity", "former model", "similarity", "new model"),
        [
            (
                f"{each.tenant}/{each.user_id}",
                *(each.one, each.other),
                *(Figure(f"{each.similarity:.3f}"), each.verdict),
                *(Figure(f"{each.new_similarity:.3f}"), each.new_verdict),
            )
            for each in preview.first
        ],
    )
    typer.echo("Decisions that are in the log stay as they are.")
