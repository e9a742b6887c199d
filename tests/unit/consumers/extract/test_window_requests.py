"""Requests about windows: conditions for asking about pairs of facts, and the pairs that an answer is for."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mnemon_consumers.extract.window_requests import WindowRequest
from mnemon_contracts.fact_pairs import FactPair
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Extraction
from mnemon_infra.database.windows.window_repository import StoredWindow
from mnemon_infra.models.language.port import PromptMessage

SAID = [PromptMessage(7, "user", "hello", datetime(2026, 11, 21, 18, 5, tzinfo=UTC))]
WINDOW = StoredWindow("acme", "u1", "talk", 7, 9)


def window_request(window: StoredWindow = WINDOW, said: Any = SAID, **extraction: Any) -> WindowRequest:
    settings = SettingsV1(extraction=Extraction(**{"provider": "openai", "model": "m"} | extraction))
    return WindowRequest(window, said, [], settings)


def test_first_request_of_a_model_may_ask_about_pairs() -> None:
    assert window_request().may_have_pairs


@pytest.mark.parametrize(
    "refused",
    [
        window_request(provider="offline", model=None),
        window_request(said=[]),
        window_request(pairs=0),
        window_request(WINDOW._replace(attempts=1)),
    ],
    ids=["rules answer", "nothing said", "switched off", "failed before"],
)
def test_request_asks_about_no_pairs(refused: WindowRequest) -> None:
    assert not refused.may_have_pairs


@pytest.mark.parametrize("line", [0, 1])
def test_answer_counts_for_the_pairs_of_its_line(line: int) -> None:
    pairs = {
        (WINDOW.owner, each): [
            FactPair(fact_id=f"ar_{each}", version="s1", other_id="ar_9", other_version="s2")
        ]
        for each in (0, 1)
    }
    asked = window_request(WINDOW._replace(batch_id="b", line=line))
    assert asked.with_batch_pairs(pairs).pairs == pairs[WINDOW.owner, line]
    assert asked.with_batch_pairs({}).pairs == ()
