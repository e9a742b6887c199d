"""Facts of the tier `profile` that a context shows before each answer."""

from datetime import UTC, datetime

import pytest

from mnemon_consumers.retrieve import decide
from mnemon_consumers.retrieve.search.hits import RankedHit
from mnemon_contracts.settings.groups import ContextSettings, SettingsV1
from mnemon_infra.database.facts.fact_repository import FactRecord

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HIGH_ONLY = SettingsV1(context=ContextSettings(key_facts="high"))


def fact(number: int, importance: int) -> FactRecord:
    return FactRecord(
        f"pf_{number:03}", f"fact {number}", "user_fact", "profile", importance, None, NOW, NOW, number, "e"
    )


def hit(found: FactRecord) -> RankedHit:
    return RankedHit(found.id, "memories", found.text, 0.7, NOW, {}, found)


FACTS = [fact(1, 9), fact(2, 8), fact(3, 7), fact(4, 2)]


@pytest.mark.parametrize(
    ("settings", "shown"),
    [(SettingsV1(), ["pf_001", "pf_002", "pf_003", "pf_004"]), (HIGH_ONLY, ["pf_001", "pf_002"])],
)
def test_settings_say_whether_less_important_facts_are_shown_unasked(
    settings: SettingsV1, shown: list[str]
) -> None:
    context = decide.build_context(decide.ContextSources(facts=FACTS), settings, NOW)
    assert [each.id for each in context.facts] == shown
    assert context.not_considered["facts"] == len(FACTS) - len(shown)


def test_a_less_important_fact_is_shown_where_it_fits_the_query() -> None:
    known = decide.ContextSources(facts=FACTS, hits=[hit(FACTS[3]), hit(FACTS[0])])
    context = decide.build_context(known, HIGH_ONLY, NOW)
    assert [each.id for each in context.relevant] == ["pf_004", "pf_001"]
    assert context.not_considered["facts"] == 1, "pf_003: pf_004 is shown in another section"
