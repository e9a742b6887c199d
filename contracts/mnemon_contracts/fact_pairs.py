"""Pairs of facts that a language model is asked to compare."""

from typing import Literal

from pydantic import Field

from mnemon_contracts.base import Contract, Identifier

Relation = Literal["same", "update", "different"]


class FactPair(Contract):
    """Two facts that may say the same, for comparison by a language model."""

    fact_id: Identifier = Field(description="Id of the fact with the newer text.")
    version: Identifier = Field(description="Id of the event that wrote the compared text of the newer fact.")
    other_id: Identifier = Field(description="Id of the fact with the older text.")
    other_version: Identifier = Field(
        description="Id of the event that wrote the compared text of the older fact."
    )
