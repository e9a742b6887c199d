"""Calls and tokens of language models for a thousand messages, compared with one call per message."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from mnemon_bench.provider_server.process import use_provider
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.state import ProviderState
from mnemon_bench.workers.processes import spawn_consumers
from mnemon_bench.workloads.conversations import (
    generate_conversations,
    make_message,
    publish_events,
    wait_for_summaries,
    wait_for_windows,
)
from mnemon_consumers.extract.prompt import build_request
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction, Extraction
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.port import PromptMessage
from mnemon_infra.models.language.registry import open_language_models
from mnemon_infra.settings.store import write_settings

USERS, MESSAGES = 20, 50
MODEL = "bench-model"
LAST = 10
"""Maximum number of messages that a call of the case `last_ten` shows to the model."""

TARGETS = {"at_least": {"input_saved": 0.80}}


async def run(
    deployment: Deployment, *, users: int = USERS, report: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Extract facts from the same messages in three ways, with a local server in the place of a provider.

    `mnemon` sends windows of messages in batches, and also writes summaries. `whole` sends one request per
    message, with the whole conversation up to this message. `last_ten` does the same with at most the last
    ten messages. All three ask for facts with the same instructions. The server counts one token per word.

    `users` is the number of users; each has `MESSAGES` messages.

    Returns:
        `input_saved`: the share of `whole`'s input tokens that mnemon does not need. `ratios`: mnemon's input
        tokens over those of `whole` and of `last_ten`, and its calls over those of `whole`. `cached_share`:
        share of the input tokens of each way that the provider had cached. `per_1000_messages`: calls and
        tokens of each way, and of mnemon by purpose. `targets`: the limit of `input_saved`.
    """
    messages = users * MESSAGES
    deployment = deployment.model_copy(update={"extract_seconds": 1.0})
    counted: dict[str, dict[str, float]] = {}
    with ProviderServer(ProviderState(polls=1)) as server:
        counted["mnemon"] = await _measure_mnemon(use_provider(deployment, server.url), server, users)
        by_purpose = _count_by_purpose(server.state)
    report(f"mnemon: {counted['mnemon']}")
    for name, shown in {"whole": None, "last_ten": LAST}.items():
        with ProviderServer(ProviderState()) as server:
            await _ask_for_each_message(use_provider(deployment, server.url), users, shown)
            counted[name] = _count_tokens(server.state)
        report(f"{name}: {counted[name]}")
    mnemon, whole, last_ten = (counted[name]["input_tokens"] for name in ("mnemon", "whole", "last_ten"))
    return {
        "ratios": {
            "input_to_whole": round(mnemon / whole, 4),
            "input_to_last_ten": round(mnemon / last_ten, 4),
            "calls_to_whole": round(counted["mnemon"]["calls"] / counted["whole"]["calls"], 4),
        },
        "targets": TARGETS,
        "input_saved": round(1 - mnemon / whole, 4),
        "cached_share": {
            name: round(each["cached_tokens"] / each["input_tokens"], 3) for name, each in counted.items()
        },
        "per_1000_messages": {
            name: {what: round(number * 1000 / messages) for what, number in each.items()}
            for name, each in (counted | by_purpose).items()
        },
    }


async def _measure_mnemon(deployment: Deployment, server: ProviderServer, users: int) -> dict[str, float]:
    async with await connect_deployment(deployment, name="bench") as connection:
        settings = SettingsV1(
            extraction=Extraction(provider="openai", model=MODEL, idle_seconds=2, pool_seconds=2),
            compaction=Compaction(provider="openai", model=MODEL),
        )
        await write_settings(connection, settings)
        names = ["persist", "index", "dedupe", "extract", "compact"]
        async with spawn_consumers(names, deployment):
            last = await publish_events(connection, generate_conversations(range(users), MESSAGES))
            await wait_for_windows(connection, last)
            await wait_for_summaries(connection, max(last.values()))
    return _count_tokens(server.state)


async def _ask_for_each_message(deployment: Deployment, users: int, recent_limit: int | None) -> None:
    """Send one request per message, with at most `recent_limit` messages (None: all) and no known facts."""
    settings = Extraction()
    begun = datetime.now(UTC)
    async with open_language_models(deployment) as models:
        model = await models.open_model("openai", MODEL)
        for speaker in range(users):
            so_far: list[PromptMessage] = []
            for number in range(MESSAGES):
                message = make_message(speaker, number)
                so_far.append(
                    PromptMessage(number, message.role, message.content, begun + timedelta(seconds=number))
                )
                await model.complete(
                    build_request(so_far[-recent_limit:] if recent_limit else so_far, [], settings)
                )


def _count_tokens(state: ProviderState) -> dict[str, float]:
    used = state.used
    return {
        "calls": len(state.questions),
        "input_tokens": used.input,
        "cached_tokens": used.cached,
        "output_tokens": used.output,
    }


def _count_by_purpose(state: ProviderState) -> dict[str, dict[str, float]]:
    """Return calls and input tokens by purpose: facts and summaries.

    A request with a schema asks for facts, and a request without a schema for a summary.
    """
    facts = [question for question in state.questions if question.schema is not None]
    summaries = [question for question in state.questions if question.schema is None]

    def count_words(questions: Iterable[Any]) -> int:
        return sum(len(each.instructions.split()) + len(each.text.split()) for each in questions)

    return {
        "mnemon, facts": {"calls": len(facts), "input_tokens": count_words(facts)},
        "mnemon, summaries": {"calls": len(summaries), "input_tokens": count_words(summaries)},
    }
