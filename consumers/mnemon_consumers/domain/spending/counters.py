"""Metrics of tokens and costs of models in this process; the log has the calls of all processes."""

from mnemon_infra.models.language.port import Purpose, Usage
from mnemon_infra.telemetry.metrics import MODEL_COST, MODEL_TOKENS


def count_usage(provider: str, purpose: Purpose, usage: Usage, usd: float | None) -> None:
    """Add an answer's tokens and cost, in US dollars, to the metrics.

    A model without a price adds no cost.
    """
    for kind, tokens in zip(("input", "cached", "output"), usage, strict=True):
        MODEL_TOKENS.add(provider, purpose, kind, by=tokens)
    MODEL_COST.add(provider, purpose, by=usd or 0.0)
