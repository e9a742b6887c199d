"""Names of generations, whose length PostgreSQL counts in bytes."""

import pytest

from mnemon_infra.generation_names import LONGEST_NAME, NameTooLong, name_of


@pytest.mark.parametrize("letter", ["a", "я"])
def test_longest_name_is_counted_in_bytes(letter: str) -> None:
    suffix = name_of("", "former")
    room = (LONGEST_NAME - len(suffix)) // len(letter.encode())
    longest = name_of(letter * room, "former")
    assert longest.endswith(suffix)
    with pytest.raises(NameTooLong, match=f"longer than {LONGEST_NAME} bytes"):
        name_of(letter * (room + 1), "former")
