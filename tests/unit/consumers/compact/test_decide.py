"""Summaries that a conversation needs, and the messages that they cover."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.compact.decide import (
    MOST_MERGED,
    MergeStep,
    SummaryStep,
    build_summary_event,
    choose_next_step,
)
from mnemon_contracts.events.memory import SummaryMergedV1, SummaryWrittenV1
from mnemon_contracts.settings.language_models import Compaction
from mnemon_infra.database.memory.summaries import StoredSummary

PLACE = ("acme", "anna", "trip")
AT = datetime(2026, 3, 1, tzinfo=UTC)


def said(*seqs: int) -> list[int]:
    return list(seqs)


def stored(*ranges: tuple[int, int]) -> list[StoredSummary]:
    return [
        StoredSummary(*each, f"e{each[1]}", each[1], AT, f"s{each[1]}", "They talked.") for each in ranges
    ]


class TestNextStep:
    def test_messages_within_the_limit_are_not_summarised(self) -> None:
        assert choose_next_step(said(*range(16)), [], Compaction()) is None

    def test_oldest_messages_beyond_the_limit_are_summarised(self) -> None:
        step = choose_next_step(said(*range(3, 54, 3)), [], Compaction())
        assert step == SummaryStep(tuple(said(3, 6, 9, 12, 15, 18)))
        assert step.covers == (3, 18)

    def test_summaries_are_merged_before_the_limit(self) -> None:
        six = stored(*((n, n + 5) for n in range(0, 36, 6)))
        step = choose_next_step(said(*range(36, 53)), six, Compaction())
        assert step == MergeStep(tuple(six))
        assert step.covers == (0, 35)
        assert choose_next_step(said(*range(36, 53)), six[1:], Compaction()) == SummaryStep(
            tuple(said(*range(36, 42)))
        )

    def test_summaries_at_the_limit_stay_unmerged(self) -> None:
        assert (
            choose_next_step(said(*range(36, 52)), stored(*((n, n) for n in range(6))), Compaction()) is None
        )

    def test_summaries_beyond_the_limit_are_merged_at_once(self) -> None:
        seven = stored(*((n, n) for n in range(7)))
        assert choose_next_step([], seven, Compaction()) == MergeStep(tuple(seven))

    def test_oldest_of_many_summaries_are_merged_first(self) -> None:
        many = stored(*((n, n) for n in range(1000)))
        assert choose_next_step([], many, Compaction()) == MergeStep(tuple(many[:MOST_MERGED]))
        more = Compaction(merge_above=2 * MOST_MERGED)
        assert choose_next_step([], many, more) == MergeStep(tuple(many[: 2 * MOST_MERGED]))

    @given(st.integers(2, 40), st.data(), st.integers(2, 10), st.integers(0, 300))
    def test_conversation_of_any_length_is_covered_once(
        self, after: int, data: st.DataObject, merge_above: int, length: int
    ) -> None:
        settings = Compaction(
            after_messages=after, messages=data.draw(st.integers(1, after)), merge_above=merge_above
        )
        left, live = said(*range(length)), list[StoredSummary]()
        while step := choose_next_step(left[: after + 1], live[-merge_above - 1 :], settings):
            made = stored(step.covers)
            if isinstance(step, SummaryStep):
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
        event = build_summary_event(PLACE, SummaryStep(said(3, 7)), "They talked.", "openai/m")
        assert event.subject == "memory.acme.anna.summary.written.v1"
        written = SummaryWrittenV1.parse(event.body)
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
        event = build_summary_event(
            PLACE, MergeStep(stored((1, 6), (7, 12), (14, 19))), "They talked.", "openai/m"
        )
        assert event.subject == "memory.acme.anna.summary.merged.v1"
        merged = SummaryMergedV1.parse(event.body)
        assert merged.merged == ("s6", "s12", "s19")
        assert (merged.from_seq, merged.to_seq, merged.lineage.sources) == (1, 19, ())

    def test_summary_id_follows_from_its_start(self) -> None:
        def ids(*steps: SummaryStep | MergeStep, place: tuple[str, str, str] = PLACE) -> set[str]:
            return {
                build_summary_event(place, step, text, "m").id
                for step in steps
                for text in ("They.", "Talked.")
            }

        first, second, third = stored((1, 6), (7, 12), (13, 18))
        assert len(ids(SummaryStep(said(3, 7)), SummaryStep(said(3, 7, 9)))) == 1
        assert len(ids(MergeStep([first, second]), MergeStep([first, second, third]))) == 1
        others = (SummaryStep(said(4, 7)), MergeStep([second, third]))
        assert len(ids(SummaryStep(said(3, 7)), MergeStep([first, second]), *others)) == 4
        assert not ids(SummaryStep(said(3))) & ids(SummaryStep(said(3)), place=("acme", "anna", "else"))
