"""Comparison of the files of a folder with the documents of its collection. No I/O."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from mnemon_contracts.base import ID_LIMIT
from mnemon_contracts.events.memory import Origin
from mnemon_contracts.verbs.tools import DocumentInfo

MAX_GONE: Final = 0.5
"""Share of a collection's files that may be gone before their removal needs a confirmation: the folder may be
another folder of the same name.
"""


class FolderChanges(NamedTuple):
    """Changes of a folder: `added`, `changed` and `unchanged` have paths of files, `removed` document ids."""

    added: list[str]
    changed: list[str]
    unchanged: list[str]
    removed: list[str]

    @property
    def has_most_removed(self) -> bool:
        """True if more than the share `MAX_GONE` of the collection's files would be removed."""
        known = len(self.changed) + len(self.unchanged) + len(self.removed)
        return len(self.removed) > MAX_GONE * known


def derive_document_id(collection: str, path: str) -> str:
    """Return the id of a file's document: collection and path, or a digest if they are too long together."""
    name = f"{collection}/{path}"
    if len(name.encode()) <= ID_LIMIT:
        return name
    return f"sha256:{sha256(name.encode()).hexdigest()}"


def compare_files(
    collection: str,
    origin: Origin,
    digests: Mapping[str, str],
    left_out: Iterable[str],
    known: Iterable[DocumentInfo],
) -> FolderChanges:
    """Compare the files of a folder with the documents of its collection.

    Documents that were added to the collection in another way stay unchanged.

    Args:
        collection: name of the collection.
        origin: kind of the folder: `repository` or `folder`.
        digests: SHA-256 of the text of each file to index, by path.
        left_out: paths of files and folders that cannot be read; those of folders end with `/`. The documents
            of these files, and of files in these folders, stay.
        known: documents of the collection.
    """
    documents = {
        each.document_id: each
        for each in known
        if each.origin and each.source and each.document_id == derive_document_id(collection, each.source)
    }
    added: list[str] = []
    changed: list[str] = []
    unchanged: list[str] = []
    for path, digest in digests.items():
        document = documents.pop(derive_document_id(collection, path), None)
        if document is None:
            added.append(path)
        elif (document.digest, document.origin) == (digest, origin):
            unchanged.append(path)
        else:
            changed.append(path)
    kept = frozenset(left_out)
    folders = tuple(path for path in kept if path.endswith("/"))
    removed = [
        document_id
        for document_id, each in documents.items()
        if each.source and each.source not in kept and not each.source.startswith(folders)
    ]
    return FolderChanges(added, changed, unchanged, sorted(removed))
