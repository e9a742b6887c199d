"""Replies of `history` and their errors."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from mnemon_consumers.retrieve.memory.cache import PositionedValue
from mnemon_consumers.retrieve.verbs.conversation import ConversationVerbs
from mnemon_infra.broker.service import Refusal
from mnemon_infra.database.memory.user_memory import ConversationView, StoredRow


def test_message_too_long_for_a_reply_is_refused_with_the_request_that_reads_on() -> None:
    unused: Any = None
    log: Any = SimpleNamespace(reply_limit=1000)
    row = StoredRow(5, "e5", "user", "w" * 2000, None, None, None, datetime(2026, 1, 1, tzinfo=UTC))
    seen = PositionedValue(ConversationView("c1", [row], complete=False), 7)

    with pytest.raises(Refusal) as refused:
        ConversationVerbs(unused, unused, log)._build_history_body(seen, 30)

    assert str(refused.value).startswith("the message at log position 5 is longer than a reply may be")
    assert str(refused.value).endswith("give `before` 5 and `conversation` c1")
