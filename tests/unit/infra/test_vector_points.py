"""Points of searchable items: the thread that weighs the words of their texts."""

import threading
from unittest.mock import Mock
from uuid import uuid4

import pytest

from mnemon_infra.models.embedding import Sparse
from mnemon_infra.models.words import concepts
from mnemon_infra.vectors.vector_index import IN_PLACE, SearchableItem, VectorIndex, build_points


@pytest.mark.parametrize(("texts", "characters", "in_place"), [(20, 80, True), (1, IN_PLACE + 1, False)])
async def test_long_texts_are_weighed_in_another_thread(
    monkeypatch: pytest.MonkeyPatch, texts: int, characters: int, in_place: bool
) -> None:
    """A text of 1 MB takes a tenth of a second and more, in which the event loop answers nothing else."""
    threads: list[int] = []

    def weigh(_: str) -> Sparse:
        threads.append(threading.get_ident())
        return Sparse([], [])

    monkeypatch.setattr(concepts, "weigh_document", weigh)
    item = SearchableItem(uuid4(), ("acme", "anna"), {}, "w" * characters, "")

    await build_points(VectorIndex(Mock(), None), [item] * texts)

    assert [each == threading.get_ident() for each in threads] == [in_place] * texts
