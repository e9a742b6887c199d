"""Descriptions of invalid values, as errors show them."""

import pytest
from pydantic import ValidationError

from mnemon_contracts.base import InvalidBody, describe_first_problem
from mnemon_contracts.verbs.ask import MAX_PRECEDING, ContextV1
from mnemon_contracts.verbs.tools import SearchReplyV2


def test_first_of_several_problems_is_described_on_one_line() -> None:
    with pytest.raises(ValidationError) as invalid:
        SearchReplyV2.model_validate({"hits": [{"id": "pf_001"}], "degraded": 1})
    assert len(invalid.value.errors()) > 2
    assert describe_first_problem(invalid.value) == "hits: item 1: scope: Field required"
    assert describe_first_problem(invalid.value, "hit") == "hits: hit 1: scope: Field required"


def test_length_of_a_list_is_described_in_terms_of_json() -> None:
    with pytest.raises(InvalidBody) as invalid:
        ContextV1.create_strict(preceding=["hi"] * (MAX_PRECEDING + 1))
    limit = f"Array should have at most {MAX_PRECEDING} items, not {MAX_PRECEDING + 1}"
    assert str(invalid.value) == f"preceding: {limit}"
