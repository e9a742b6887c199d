"""Query of the vector search: the request's query, else the newest message, and the results of the task."""

from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.retrieve.context.query import LONGEST_QUERY, LONGEST_RESULT, build_query


def test_the_query_goes_before_what_was_said_last() -> None:
    assert build_query("Где мы были?", "hi", ()) == "Где мы были?"
    assert build_query(None, "hi", ()) == "hi"
    assert build_query("  ", "hi", ()) == "hi"


def test_context_without_texts_has_no_query() -> None:
    assert build_query(None, None, ()) is None
    assert build_query("", "\n", [" "]) is None


def test_results_of_the_task_follow_newest_first_each_once_and_on_one_line() -> None:
    results = ["weather: rain\nin Riga", "hotel: Neiburgs", "hotel: Neiburgs"]
    assert build_query("and there?", None, results) == "and there? hotel: Neiburgs weather: rain in Riga"


def test_results_alone_are_a_query() -> None:
    assert build_query(None, None, ["поезд в 9:40"]) == "поезд в 9:40"


def test_a_long_result_gives_its_beginning() -> None:
    assert build_query("q", None, ["x" * 10_000]) == "q " + "x" * LONGEST_RESULT


def test_a_long_question_leaves_half_to_the_task() -> None:
    asked = build_query("q" * 5000, None, ["result"])
    assert asked is not None
    assert asked.endswith("q result")
    assert len(asked) == LONGEST_QUERY


@given(st.none() | st.text(), st.none() | st.text(), st.lists(st.text(max_size=600), max_size=20))
def test_query_is_bounded_and_on_one_line(query: str | None, last: str | None, results: list[str]) -> None:
    asked = build_query(query, last, results)
    assert asked is None or 0 < len(asked) <= LONGEST_QUERY
    assert asked is None or len(asked.splitlines()) == 1
