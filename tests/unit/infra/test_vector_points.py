"""Points of searchable items: long texts are weighed outside the thread of the event loop."""

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
    """Weighing a text of 1 MB takes over 0.1 s, for which it would block the event loop."""
    threads: list[int] = []

    def weigh(_: str) -> Sparse:
        threads.append(threading.get_ident())
        return Sparse([], [])

    monkeypatch.setattr(concepts, "weigh_document", weigh)
    item = SearchableItem(uuid4(), ("acme", "anna"), {}, "w" * characters, "")

    await build_points(VectorIndex(Mock(), None), [item] * texts)

    assert [each == threading.get_ident() for each in threads] == [in_place] * texts
