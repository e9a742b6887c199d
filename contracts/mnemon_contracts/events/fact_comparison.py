"""Events about facts that a language model has compared: `fact.compared.v1`, `fact.merged.v1`."""

from typing import Literal

from pydantic import Field

from mnemon_contracts.base import Event, Identifier
from mnemon_contracts.events.memory import Fact, FactEvent, Lineage
from mnemon_contracts.fact_pairs import FactPair, Relation


class FactComparedV1(FactPair, Event):
    """A language model has compared the facts of an undecided pair; dedupe decides whether to merge them."""

    relation: Relation | None = Field(
        default=None,
        description="`same`: both facts say the same; `update`: the newer fact replaces the older fact; "
        "`different`: both facts are kept. Absent: the model gave no usable answer, and the pair is "
        "compared again, unless this was the third comparison.",
    )
    lineage: Lineage = Field(default=Lineage(), description="Model and prompt of the comparison.")


class FactMergedV1(FactEvent):
    """Two facts were merged after a language model compared them; `fact.forgotten` of `merged_id` follows."""

    fact_id: Identifier = Field(description="Id of the fact that is kept: the fact with the older text.")
    merged_id: Identifier = Field(description="Id of the fact that was merged into the kept fact.")
    relation: Literal["same", "update"] = Field(description="Relation of the newer fact to the older fact.")
    fact: Fact = Field(description="The kept fact after the merge.")
    former: Fact = Field(description="The kept fact before the merge.")
    compared_id: Identifier = Field(description="Id of the `fact.compared` event that caused the merge.")
    lineage: Lineage = Field(
        default=Lineage(),
        description="Model that compared the facts; if both facts have sources, also the sources of both.",
    )
