"""Pairs of facts that a language model is asked to compare."""

from typing import Literal

from pydantic import Field

from mnemon_contracts.base import Contract, Identifier

Relation = Literal["same", "update", "different"]


class FactPair(Contract):
    """Two facts that may say the same, as a language model is shown them."""

    fact_id: Identifier = Field(description="The fact with the newer words.")
    version: Identifier = Field(description="Event id that gave the newer fact the words that are shown.")
    other_id: Identifier = Field(description="The fact with the older words.")
    other_version: Identifier = Field(
        description="Event id that gave the older fact its words that are shown."
    )
