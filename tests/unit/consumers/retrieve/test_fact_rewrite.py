"""Rewriting of a fact by hand, and the limits on it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemon_consumers.retrieve.verbs.facts.rewrite import find_conflict, rewrite_fact
from mnemon_contracts.events.memory import Fact
from mnemon_contracts.settings.groups import FactLimits, SettingsV1
from mnemon_contracts.verbs.tools import UpdateV1
from mnemon_infra.database.facts.fact_repository import FactRecord

NOW = datetime(2026, 11, 21, tzinfo=UTC)
LATER = NOW + timedelta(days=100)
LIMITS = FactLimits(profile=2, working=1)
EXPIRING = LIMITS.model_copy(update={"working_days": 14})


def stored(fact_id: str, text: str, tier: Any = "archive") -> FactRecord:
    return FactRecord(fact_id, text, "user_fact", tier, 5, None, NOW, NOW, 1, fact_id)


@pytest.mark.parametrize(
    ("former", "wanted", "expires_at"),
    [
        ({"tier": "working", "expires_at": LATER}, {"tier": "profile"}, None),
        ({"tier": "working", "expires_at": LATER}, {"tier": "archive"}, None),
        ({"tier": "working", "expires_at": LATER}, {"tier": "working"}, LATER),
        ({"tier": "working", "expires_at": LATER}, {"importance": "low"}, LATER),
        ({"tier": "archive"}, {"tier": "working"}, None),
        ({"tier": "archive", "expires_at": LATER}, {"tier": "working"}, LATER),
        ({"tier": "archive"}, {"tier": "working", "expires_at": LATER}, LATER),
        ({"tier": "working"}, {"tier": "profile", "expires_at": LATER}, LATER),
    ],
)
def test_a_fact_that_moves_keeps_its_date_only_where_it_is_for_now(
    former: dict[str, Any], wanted: dict[str, Any], expires_at: datetime | None
) -> None:
    fact = rewrite_fact(Fact(text="In Rome", **former), UpdateV1(id="wk_001", **wanted), NOW, SettingsV1())
    assert fact.expires_at == expires_at


@pytest.mark.parametrize(
    ("wanted", "names"),
    [({"importance": "high"}, ("Rex",)), ({"text": "Rex is  old"}, ("Rex",)), ({"text": "Bim is old"}, ())],
)
def test_new_words_drop_the_names_of_the_former_ones(wanted: dict[str, Any], names: tuple[str, ...]) -> None:
    former = Fact(text="Rex is old", names=("Rex",))
    assert rewrite_fact(former, UpdateV1(id="ar_001", **wanted), NOW, SettingsV1()).names == names


def test_a_fact_that_becomes_working_expires_only_where_a_setting_says_so() -> None:
    former, wanted = Fact(text="In Rome", tier="archive"), UpdateV1(id="ar_001", tier="working")
    fact = rewrite_fact(former, wanted, NOW, SettingsV1(limits=EXPIRING))
    assert fact.expires_at == NOW + timedelta(days=14)


@pytest.mark.parametrize(
    ("former", "text", "expires_at"),
    [
        ("In Rome until Friday", "In Rome until Sunday", datetime(2026, 11, 23, tzinfo=UTC)),
        ("In Rome", "In Rome until Sunday", datetime(2026, 11, 23, tzinfo=UTC)),
        ("In Rome until Friday", "In Rome for good", None),
        ("In Rome", "In Milan", LATER),
        ("В Риме до пятницы", "В Риме до воскресенья", datetime(2026, 11, 23, tzinfo=UTC)),
        ("В Риме до пятницы", "В Риме насовсем", None),
    ],
)
def test_expiry_belongs_to_the_words_that_name_it(
    former: str, text: str, expires_at: datetime | None
) -> None:
    fact = Fact(text=former, tier="working", expires_at=LATER)
    assert rewrite_fact(fact, UpdateV1(id="wk_001", text=text), NOW, SettingsV1()).expires_at == expires_at


def test_the_same_words_are_kept_once() -> None:
    former = Fact(text="Anna likes tea")
    others = [stored("ar_002", "Анна любит чай"), stored("ar_003", "Anna likes green tea")]
    conflict = find_conflict(Fact(text="анна  любит чай!"), former, others, LIMITS)
    assert conflict is not None
    assert conflict.field == "text"
    assert "ar_002" in conflict.problem
    assert find_conflict(Fact(text="Anna likes green tea a lot"), former, others, LIMITS) is None
    twin = stored("ar_004", "anna likes tea.")
    assert find_conflict(Fact(text="Anna likes tea", importance=9), former, [twin], LIMITS) is None


def test_full_tier_refuses_a_fact_of_another_tier() -> None:
    others = [stored("pf_001", "a", "profile"), stored("wk_001", "b", "working")]
    former = Fact(text="Anna likes tea")
    assert find_conflict(Fact(text="Anna likes tea", tier="profile"), former, others, LIMITS) is None
    conflict = find_conflict(Fact(text="Anna likes tea", tier="working"), former, others, LIMITS)
    assert conflict is not None
    assert conflict.field == "tier"
    assert conflict.problem.startswith("working is full, limit 1;")
    assert "forget" in conflict.problem
    stays = Fact(text="Anna likes coffee", tier="working")
    assert find_conflict(stays, Fact(text="Anna likes tea", tier="working"), others, LIMITS) is None
    assert find_conflict(former, stays, [stored(f"ar_{n}", f"{n}") for n in range(9)], LIMITS) is None
