"""Expiry of a fact that is proposed again, in the same or in other words."""

from datetime import UTC, datetime, timedelta

from mnemon_consumers.dedupe.comparison import Likeness, NearestFact
from mnemon_consumers.dedupe.decide import Proposal, decide_proposal
from mnemon_consumers.dedupe.user_facts import UserFacts
from mnemon_contracts.events.memory import Fact, FactProposedV1, FactSavedV1, FactUpdatedV1
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_infra.models.embedding import Thresholds

SATURDAY = datetime(2026, 11, 21, 12, tzinfo=UTC)
THRESHOLDS = Thresholds(update=0.85, duplicate=0.95, relevant=0.6)
LIKENESS = Likeness("given/model", THRESHOLDS)


class RepeatingUser:
    """A user whose proposals all concern one fact."""

    def __init__(self) -> None:
        self._known = UserFacts()

    def propose(self, text: str, at: datetime) -> Fact:
        """Decide on a proposal with a similarity of 0.99 to the known fact, and return the fact after it."""
        near = [NearestFact(fact_id, 0.99) for fact_id in self._known.facts]
        proposal = Proposal(f"{at} {text}", at, FactProposedV1(text=text))
        for _, event in decide_proposal(proposal, self._known, near, SettingsV1(), LIKENESS):
            assert isinstance(event, FactSavedV1 | FactUpdatedV1)
            self._known.apply(event, str(event.id), at)
        (known,) = self._known.facts.values()
        return known.fact


def test_expiry_belongs_to_the_words_that_name_it() -> None:
    user = RepeatingUser()
    first = user.propose("Is in Lisbon until Friday", SATURDAY)
    assert (first.tier, first.expires_at) == ("working", datetime(2026, 11, 28, tzinfo=UTC))
    shorter = user.propose("Is in Lisbon until Sunday", SATURDAY + timedelta(minutes=1))
    assert (shorter.text, shorter.expires_at) == (
        "Is in Lisbon until Sunday",
        datetime(2026, 11, 23, tzinfo=UTC),
    )
    for_good = user.propose("Is in Lisbon for good", SATURDAY + timedelta(minutes=2))
    assert (for_good.tier, for_good.expires_at) == ("working", None)


def test_repeated_fact_takes_the_later_expiry() -> None:
    user = RepeatingUser()
    first = user.propose("На больничном на две недели", SATURDAY)
    assert first.expires_at == datetime(2026, 12, 6, tzinfo=UTC)
    again = user.propose("На больничном на две недели", SATURDAY + timedelta(days=5))
    assert again.expires_at == datetime(2026, 12, 11, tzinfo=UTC)
