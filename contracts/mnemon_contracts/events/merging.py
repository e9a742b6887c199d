"""Events about facts that a language model has compared: `fact.compared.v1`, `fact.merged.v1`."""

from typing import Literal

from pydantic import Field

from mnemon_contracts.base import Event, Identifier
from mnemon_contracts.events.memory import Fact, FactEvent, Lineage
from mnemon_contracts.fact_pairs import FactPair, Relation


class FactComparedV1(FactPair, Event):
    """A language model was asked how two undecided facts relate; dedupe decides what follows."""

    relation: Relation | None = Field(
        default=None,
        description="`same`: in other words; `update`: the newer takes the place of the older; `different`: "
        "both are kept. None: no usable answer; the pair is asked again, three times in all.",
    )
    lineage: Lineage = Field(default=Lineage(), description="Which model was asked, with which prompt.")


class FactMergedV1(FactEvent):
    """Two facts became one, as a language model compared them. The other's `fact.forgotten` follows."""

    fact_id: Identifier = Field(description="The fact that is kept: the one with the older words.")
    merged_id: Identifier = Field(description="The fact that went into it.")
    relation: Literal["same", "update"] = Field(description="How the two relate.")
    fact: Fact = Field(description="As it is from now on.")
    former: Fact = Field(description="As it was.")
    compared_id: Identifier = Field(description="Event id of the `fact.compared` that it follows from.")
    lineage: Lineage = Field(
        default=Lineage(),
        description="Where both were learned, if both have sources, and which model compared them.",
    )
