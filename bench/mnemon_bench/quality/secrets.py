"""Precision and recall of the detection of secrets, over sentences that a person labelled."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

from mnemon_bench.measures.percentiles import compute_percentiles
from mnemon_bench.quality.labelled_lines import read_lines
from mnemon_consumers.domain.policy.secrets.detection import find_secret
from mnemon_contracts.settings.groups import Policy

LIST: Final = Path(__file__).with_name("datasets") / "secrets.jsonl"
"""The labelled sentences that mnemon ships."""

MIN_RATIO: Final = 0.95


class LabelledSentence(BaseModel):
    """A sentence with the label `secret`, or with `harmless` if it only looks as if it contained a secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    label: Literal["secret", "harmless"]
    language: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class InvalidSentences(ValueError):
    """A file is not a list of labelled sentences; the message names the file, and the invalid line if any."""


def read_sentences(path: Path) -> list[LabelledSentence]:
    """Read the sentences of a file, one JSON object per line.

    Raises:
        InvalidSentences: the file cannot be read, has no sentences, or has a line that is not a sentence; or
            a language lacks one of the labels.
    """
    sentences = read_lines(path, LabelledSentence, InvalidSentences)
    if not sentences:
        raise InvalidSentences(f"{path} has no sentences; write one JSON object per line")
    for language in {sentence.language for sentence in sentences}:
        labels = {sentence.label for sentence in sentences if sentence.language == language}
        for absent in {"secret", "harmless"} - labels:
            raise InvalidSentences(f"{path}: {language} lacks sentences labelled `{absent}`; add some")
    return sentences


def run(
    sentences: Sequence[LabelledSentence], *, report: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Measure precision and recall of the default policy.

    Args:
        sentences: sentences that a person labelled.
        report: called with lines about the progress.

    Returns:
        `ratios`: `recall_<language>` and `precision_<language>`. `targets`: 0.95 for each. `languages`: for
        each language, the number of sentences with each label, and how many of these the policy rejects.
        `missed`: secrets that it does not reject. `refused`: harmless sentences that it rejects, with the
        reason. `milliseconds`: time of one check, by percentile.
    """
    policy = Policy()
    report(f"checking {len(sentences)} sentences")
    for sentence in sentences:  # loads detectors and dictionaries outside of the measurement
        find_secret(sentence.text, policy)
    answers: list[str | None] = []
    taken: list[float] = []  # milliseconds
    for sentence in sentences:
        begun = time.perf_counter()
        answers.append(find_secret(sentence.text, policy))
        taken.append((time.perf_counter() - begun) * 1000)
    languages = {
        language: _count_refusals(sentences, answers, language) for language in _list_languages(sentences)
    }
    ratios = dict(_compute_ratios(languages))
    checked = list(zip(sentences, answers, strict=True))
    return {
        "ratios": ratios,
        "targets": {"at_least": dict.fromkeys(ratios, MIN_RATIO)},
        "languages": languages,
        "missed": [one.text for one, what in checked if one.label == "secret" and what is None],
        "refused": {one.text: what for one, what in checked if one.label == "harmless" and what is not None},
        "milliseconds": dict(zip(("p50", "p99"), compute_percentiles(taken), strict=True)),
    }


def _list_languages(sentences: Sequence[LabelledSentence]) -> list[str]:
    return sorted({sentence.language for sentence in sentences})


def _count_refusals(
    sentences: Sequence[LabelledSentence], answers: Sequence[str | None], language: str
) -> dict[str, int]:
    checked = [
        (one.label, what is not None)
        for one, what in zip(sentences, answers, strict=True)
        if one.language == language
    ]
    return {
        "secrets": sum(label == "secret" for label, _ in checked),
        "harmless": sum(label == "harmless" for label, _ in checked),
        "secrets_refused": checked.count(("secret", True)),
        "harmless_refused": checked.count(("harmless", True)),
    }


def _compute_ratios(languages: dict[str, dict[str, int]]) -> Iterator[tuple[str, float]]:
    for language, counts in languages.items():
        refused = counts["secrets_refused"] + counts["harmless_refused"]
        yield f"recall_{language}", round(counts["secrets_refused"] / counts["secrets"], 4)
        yield f"precision_{language}", round(counts["secrets_refused"] / refused, 4) if refused else 0.0
