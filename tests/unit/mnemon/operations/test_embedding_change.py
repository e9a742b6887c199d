"""Warnings on a change of the embedding model."""

from mnemon.operations.embedding_change import describe_consequences
from mnemon_contracts.settings.groups import Embedding

WORDLLAMA = Embedding()
OPENAI = Embedding(provider="openai", model="text-embedding-3-small")


def test_same_model_needs_no_change() -> None:
    assert describe_consequences(WORDLLAMA, Embedding(provider="wordllama")) is None


def test_changed_model_needs_new_vectors() -> None:
    said = describe_consequences(WORDLLAMA, OPENAI)
    assert said is not None
    assert "a model other than openai/text-embedding-3-small" in said
    assert "mnemon reindex" in said
    assert said.endswith("mnemon settings set embedding.provider=wordllama embedding.model=null")


def test_removed_model_leaves_search_by_words() -> None:
    said = describe_consequences(OPENAI, Embedding(provider="none"))
    assert said is not None
    assert "words only" in said
    assert said.endswith("embedding.provider=openai embedding.model=text-embedding-3-small")


def test_undone_change_names_no_running_model_that_the_processes_may_not_have() -> None:
    said = describe_consequences(Embedding(provider="none"), WORDLLAMA)
    assert said is not None
    assert "continue with the model that they started with" in said
    assert "a model other than wordllama, the processes cannot restart: stop" in said
