"""Names of generations, whose length PostgreSQL counts in bytes."""

import pytest

from mnemon_infra.generation_names import LONGEST_NAME, NameTooLong, name_generation


@pytest.mark.parametrize("letter", ["a", "я"])
def test_longest_name_is_counted_in_bytes(letter: str) -> None:
    suffix = name_generation("", "former")
    room = (LONGEST_NAME - len(suffix)) // len(letter.encode())
    longest = name_generation(letter * room, "former")
    assert longest.endswith(suffix)
    with pytest.raises(NameTooLong, match=f"longer than {LONGEST_NAME} bytes"):
        name_generation(letter * (room + 1), "former")
