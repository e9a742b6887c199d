"""Summaries that a conversation is due, and the messages that they cover."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.compact.decide import (
    MOST_MERGED,
    Merge,
    Write,
    next_step,
    summary,
)
from mnemon_contracts.events.memory import SummaryMergedV1, SummaryWrittenV1
from mnemon_contracts.settings.models import Compaction
from mnemon_infra.database.memory.summaries import StoredSummary
from mnemon_infra.database.messages.unsummarised import SpokenRow

PLACE = ("acme", "anna", "trip")
AT = datetime(2026, 3, 1, tzinfo=UTC)


def said(*seqs: int) -> list[SpokenRow]:
    return [SpokenRow(seq, f"e{seq}", "user", "words", None, None, None, None, AT) for seq in seqs]


def stored(*ranges: tuple[int, int]) -> list[StoredSummary]:
    return [
        StoredSummary(*each, f"e{each[1]}", each[1], AT, f"s{each[1]}", "They talked.") for each in ranges
    ]


class TestNextStep:
    def test_messages_within_the_limit_are_not_summarised(self) -> None:
        assert next_step(said(*range(16)), [], Compaction()) is None

    def test_oldest_messages_beyond_the_limit_are_summarised(self) -> None:
        step = next_step(said(*range(3, 54, 3)), [], Compaction())
        assert step == Write(tuple(said(3, 6, 9, 12, 15, 18)))
        assert step.covers == (3, 18)

    def test_before_there_would_be_too_many_summaries_they_become_one(self) -> None:
        six = stored(*((n, n + 5) for n in range(0, 36, 6)))
        step = next_step(said(*range(36, 53)), six, Compaction())
        assert step == Merge(tuple(six))
        assert step.covers == (0, 35)
        assert next_step(said(*range(36, 53)), six[1:], Compaction()) == Write(tuple(said(*range(36, 42))))

    def test_as_many_summaries_as_there_may_be_stay_while_nothing_comes(self) -> None:
        assert next_step(said(*range(36, 52)), stored(*((n, n) for n in range(6))), Compaction()) is None

    def test_of_more_than_there_may_be_one_is_made_at_once(self) -> None:
        seven = stored(*((n, n) for n in range(7)))
        assert next_step([], seven, Compaction()) == Merge(tuple(seven))

    def test_of_very_many_the_oldest_are_made_one_first(self) -> None:
        many = stored(*((n, n) for n in range(1000)))
        assert next_step([], many, Compaction()) == Merge(tuple(many[:MOST_MERGED]))
        more = Compaction(merge_above=2 * MOST_MERGED)
        assert next_step([], many, more) == Merge(tuple(many[: 2 * MOST_MERGED]))

    @given(st.integers(2, 40), st.data(), st.integers(2, 10), st.integers(0, 300))
    def test_conversation_of_any_length_is_covered_once(
        self, after: int, data: st.DataObject, merge_above: int, length: int
    ) -> None:
        settings = Compaction(
            after_messages=after, messages=data.draw(st.integers(1, after)), merge_above=merge_above
        )
        left, live = said(*range(length)), list[StoredSummary]()
        while step := next_step(left[: after + 1], live[-merge_above - 1 :], settings):
            made = stored(step.covers)
            if isinstance(step, Write):
                assert len(step.messages) == settings.messages
                left, live = left[settings.messages :], live + made
            else:
                assert len(step.summaries) > 1
                live = made
            assert len(live) <= merge_above
        assert len(left) <= after
        ends = [-1, *(each.to_seq for each in live)]
        assert [each.from_seq for each in live] == [end + 1 for end in ends[:-1]]
        assert left == said(*range(ends[-1] + 1, length))


class TestSummary:
    def test_summary_event_names_its_range_and_writer(self) -> None:
        event = summary(PLACE, Write(said(3, 7)), "They talked.", "openai/m")
        assert event.subject == "memory.acme.anna.summary.written.v1"
        written = SummaryWrittenV1.read(event.body)
        assert written.summary_id == event.id
        assert (written.conversation, written.from_seq, written.to_seq) == ("trip", 3, 7)
        assert written.text == "They talked."
        assert json.loads(event.body)["lineage"] == {
            "sources": [3, 7],
            "conversation": "trip",
            "extractor": "compact",
            "prompt_version": "compact-2",
            "model": "openai/m",
        }

    def test_merged_summary_names_its_sources(self) -> None:
        event = summary(PLACE, Merge(stored((1, 6), (7, 12), (14, 19))), "They talked.", "openai/m")
        assert event.subject == "memory.acme.anna.summary.merged.v1"
        merged = SummaryMergedV1.read(event.body)
        assert merged.merged == ("s6", "s12", "s19")
        assert (merged.from_seq, merged.to_seq, merged.lineage.sources) == (1, 19, ())

    def test_summary_id_follows_from_its_start(self) -> None:
        def ids(*steps: Write | Merge, place: tuple[str, str, str] = PLACE) -> set[str]:
            return {summary(place, step, text, "m").id for step in steps for text in ("They.", "Talked.")}

        first, second, third = stored((1, 6), (7, 12), (13, 18))
        assert len(ids(Write(said(3, 7)), Write(said(3, 7, 9)))) == 1
        assert len(ids(Merge([first, second]), Merge([first, second, third]))) == 1
        others = (Write(said(4, 7)), Merge([second, third]))
        assert len(ids(Write(said(3, 7)), Merge([first, second]), *others)) == 4
        assert not ids(Write(said(3))) & ids(Write(said(3)), place=("acme", "anna", "else"))
