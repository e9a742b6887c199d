"""Contents of a user's Markdown export."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from mnemon.operations.exports.markdown import generate_lines
from mnemon_infra.database.memory.export import ExportedMemory, KeptField, KeptMemory


class Kept:
    """Exported memory of a user that has only facts, in place of the database."""

    def __init__(self, **facts: dict[str, Any]) -> None:
        self._facts = facts

    async def stream_memories(self) -> AsyncGenerator[KeptMemory, None]:
        for seq, (fact_id, fact) in enumerate(self._facts.items(), 1):
            body = {"fact_id": fact_id, "fact": fact, "decision": {"proposal_id": "p"}, "lineage": {}}
            yield KeptMemory(seq, f"e{seq}", "fact.saved", datetime.now(UTC), body)

    async def stream_profile_fields(self) -> AsyncGenerator[KeptField, None]:
        nothing: tuple[KeptField, ...] = ()
        for field in nothing:
            yield field


def fact(text: str, expires_at: datetime | None) -> dict[str, Any]:
    return {
        "text": text, "kind": "event", "tier": "working", "importance": 5,
        "expires_at": expires_at and expires_at.isoformat(),
    }  # fmt: skip


async def test_expired_fact_is_not_exported() -> None:
    now = datetime.now(UTC)
    memory = Kept(
        wk_001=fact("Is at the dentist", now - timedelta(seconds=1)),
        wk_002=fact("Is on holiday", now + timedelta(hours=1)),
    )
    written = [line async for line in generate_lines(cast("ExportedMemory", memory), ("acme", "anna"))]
    assert [line.rpartition("] ")[2] for line in written if line.startswith("- ")] == ["Is on holiday"]


async def test_export_of_expired_facts_is_empty() -> None:
    memory = Kept(wk_001=fact("Is at the dentist", datetime.now(UTC) - timedelta(seconds=1)))
    assert [line async for line in generate_lines(cast("ExportedMemory", memory), ("acme", "anna"))] == []
