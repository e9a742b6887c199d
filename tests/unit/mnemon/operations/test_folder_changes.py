"""Changes of a folder since it was indexed, which are sent as documents."""

from mnemon.operations.folder_index.changes import compare_files, derive_document_id
from mnemon_contracts.base import ID_LIMIT
from mnemon_contracts.verbs.tools import DocumentInfo


def stored(path: str, digest: str | None = "d1", **fields: str) -> DocumentInfo:
    about = {"source": path, "origin": "folder", "collection": "shop", **fields}
    return DocumentInfo.model_validate(
        {"document_id": derive_document_id("shop", path), "digest": digest, **about}
    )


def test_only_what_differs_is_sent() -> None:
    known = [stored("same.md"), stored("edited.md", "d0"), stored("gone.md"), stored("older.md", None)]
    digests = dict.fromkeys(("new.md", "same.md", "edited.md", "older.md"), "d1")
    changes = compare_files("shop", "folder", digests, (), known)
    assert changes == (["new.md"], ["edited.md", "older.md"], ["same.md"], ["shop/gone.md"])
    assert not changes.has_most_removed


def test_documents_that_were_added_in_another_way_stay() -> None:
    by_hand = DocumentInfo(document_id="faq.md", source="faq.md", collection="shop")
    by_a_bot = DocumentInfo(document_id="shop/faq.md", source="faq.md", collection="shop")
    assert compare_files("shop", "folder", {}, (), [by_hand, by_a_bot]).removed == []


def test_a_file_that_cannot_be_read_now_keeps_its_document() -> None:
    changes = compare_files("shop", "folder", {}, ["locked.md"], [stored("locked.md"), stored("gone.md")])
    assert changes.removed == ["shop/gone.md"]


def test_files_of_a_folder_that_cannot_be_read_keep_their_documents() -> None:
    known = [stored("locked/a.md"), stored("locked/more/b.md"), stored("locked.md")]
    assert compare_files("shop", "folder", {}, ["locked/"], known).removed == ["shop/locked.md"]


def test_a_folder_that_became_a_repository_is_sent_again() -> None:
    assert compare_files("shop", "repository", {"a.md": "d1"}, (), [stored("a.md")]).changed == ["a.md"]


def test_removal_of_most_documents_is_marked() -> None:
    known = [stored(f"{number}.md") for number in range(4)]
    half = compare_files("shop", "folder", {"0.md": "d1", "1.md": "d1"}, (), known)
    most = compare_files("shop", "folder", {"0.md": "d1", "other.md": "d1"}, (), known)
    assert (half.has_most_removed, most.has_most_removed) == (False, True)
    assert not compare_files("shop", "folder", {"0.md": "d1"}, (), []).has_most_removed


def test_document_id_is_bounded() -> None:
    path = "ж" * 200
    assert derive_document_id("shop", "a.md") == "shop/a.md"
    assert len(derive_document_id("shop", path).encode()) <= ID_LIMIT
    assert derive_document_id("shop", path) != derive_document_id("shop", path + "x")
