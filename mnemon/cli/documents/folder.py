"""Action of `mnemon document add DIR`: reads a folder, and sends its changes."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from mnemon.cli.memory.requests import MemoryRequest, connect_memory
from mnemon.cli.options.target import complete_next_step
from mnemon.cli.terminal.exit_code import ExitCode, refuse, refuse_file
from mnemon.cli.terminal.output import show_json, show_progress
from mnemon.display_text import format_count, make_printable

if TYPE_CHECKING:
    from mnemon.operations.folder_index.changes import FolderChanges
    from mnemon_contracts.events.memory import Origin
    from mnemon_infra.config import Deployment
    from mnemon_producers.client import MemoryClient

CONCURRENCY: Final = 4
"""Maximum number of documents that are sent at the same time."""


@dataclass(frozen=True)
class FolderRequest:
    """Arguments of `mnemon document add DIR`."""

    target: MemoryRequest
    folder: Path
    collection: str
    max_bytes: int
    dry_run: bool
    remove: bool


@dataclass
class _FolderReading:
    """The files of a folder, by path: digests of the files to index, and the reasons to leave out others."""

    origin: "Origin"
    digests: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


async def add_folder(deployment: "Deployment", request: FolderRequest) -> ExitCode:
    """Index the new and changed files of a folder, and remove the documents of missing files.

    With `dry_run`, only show these changes. End the command if the folder has no files or cannot be read, if
    an argument is invalid, if more than half of the documents would be removed without `remove` or `dry_run`,
    or if the memory refuses a request or does not answer. The exit code is 1 if a subfolder cannot be read.
    """
    from mnemon.operations.folder_index.changes import compare_files
    from mnemon_contracts.base import InvalidBody
    from mnemon_contracts.subjects import InvalidId
    from mnemon_producers.errors import AskFailed

    reading = _read_folder(request)
    if not reading.digests and not reading.left_out:
        refuse(
            ExitCode.NEGATIVE_RESULT,
            f"{request.folder} has no files to index, or git ignores all of them; give another folder",
        )
    try:
        async with connect_memory(deployment, request.target.tenant, request.target.data) as memory:
            end = (await memory.status(request.target.user)).log_seq
            known = await memory.documents(request.target.user, collection=request.collection, min_seq=end)
            unreadable = [path for path, reason in reading.left_out.items() if reason == "unreadable"]
            changes = compare_files(
                request.collection, reading.origin, reading.digests, unreadable, known.documents
            )
            if changes.has_most_removed and not (request.remove or request.dry_run):
                refuse(
                    ExitCode.NEGATIVE_RESULT,
                    f"{format_count(len(changes.removed), 'document')} of the collection"
                    f" {request.collection!r} not found in {request.folder}; nothing was sent",
                    "If the files were deleted: --remove. If this is another folder: --collection NAME",
                )
            sent = 0 if request.dry_run else await _send_changes(memory, request, reading, changes)
    except (InvalidBody, InvalidId) as error:
        refuse(ExitCode.USAGE_ERROR, str(error), "Check --tenant, --user and --collection")
    except AskFailed as failed:
        again = "Remove the cause, then run the same command again: it does not send unchanged files twice"
        problem = complete_next_step(str(failed), request.target.data)
        refuse(ExitCode.UNAVAILABLE if failed.retryable else ExitCode.NEGATIVE_RESULT, problem, again)
    _show_changes(request, reading, changes, max(known.seen_seq, sent))
    folders = [path for path in reading.left_out if path.endswith("/")]
    for path in folders:
        typer.echo(
            f"mnemon: the folder {make_printable(path)} cannot be read, and its documents were not changed:"
            " make it readable, then run the command again",
            err=True,
        )
    return ExitCode.NEGATIVE_RESULT if folders else ExitCode.DONE


def _read_folder(request: FolderRequest) -> _FolderReading:
    from mnemon.operations.folder_index.files import NotIndexed, list_files, read_file

    try:
        files = list_files(request.folder)
    except OSError as error:
        refuse_file(request.folder, "read", error, "Check the path and the permissions of the folder")
    reading = _FolderReading(files.origin)
    for path in files.paths:
        try:
            path.encode()
            reading.digests[path] = read_file(request.folder / path, request.max_bytes).digest
        except UnicodeEncodeError:
            reading.left_out[path] = "name_not_utf8"
        except NotIndexed as error:
            reading.left_out[path] = error.reason
    return reading


async def _send_changes(
    memory: "MemoryClient", request: FolderRequest, reading: _FolderReading, changes: "FolderChanges"
) -> int:
    """Send the changes; return the log position as of which searches find all changes, 0 without changes."""
    turn = asyncio.Semaphore(CONCURRENCY)
    last = 0
    to_index = [*changes.added, *changes.changed]

    with show_progress(description="indexing", total=len(to_index) + len(changes.removed)) as update:

        async def run_step(step: Awaitable[int]) -> None:
            nonlocal last
            async with turn:
                seq = await step
            last = max(last, seq)
            update(advance=1)

        await asyncio.gather(
            *(run_step(_index_file(memory, request, reading, path)) for path in to_index),
            *(run_step(_remove_document(memory, request, document_id)) for document_id in changes.removed),
        )
    return last


async def _index_file(
    memory: "MemoryClient", request: FolderRequest, reading: _FolderReading, path: str
) -> int:
    from mnemon.operations.folder_index.changes import derive_document_id
    from mnemon.operations.folder_index.files import NotIndexed, read_file
    from mnemon_contracts.base import InvalidBody
    from mnemon_producers.errors import AskFailed

    try:
        reply = await memory.add_document(
            request.target.user,
            read_file(request.folder / path, request.max_bytes).text,
            document_id=derive_document_id(request.collection, path),
            title=path,
            source=path,
            collection=request.collection,
            origin=reading.origin,
            limit=0,
        )
    except NotIndexed as error:  # the file changed since it was listed
        reading.left_out[path] = error.reason
        return 0
    except InvalidBody:  # the text is larger as JSON than in the file
        reading.left_out[path] = "too_large"
        return 0
    except AskFailed as failed:
        if failed.code != "bad_request":
            raise
        reading.left_out[path] = "refused"  # the text is longer than a setting allows
        return 0
    return reply.seen_seq


async def _remove_document(memory: "MemoryClient", request: FolderRequest, document_id: str) -> int:
    return (await memory.remove_document(request.target.user, document_id, limit=0)).seen_seq


def _show_changes(
    request: FolderRequest, reading: _FolderReading, changes: "FolderChanges", seq: int
) -> None:
    added, changed = ([path for path in paths if path not in reading.left_out] for paths in changes[:2])
    left_out = Counter(reading.left_out.values())
    counts = {
        "added": len(added),
        "changed": len(changed),
        "unchanged": len(changes.unchanged),
        "removed": len(changes.removed),
    }
    if request.target.as_json:
        summary: dict[str, Any] = {
            "collection": request.collection,
            "origin": reading.origin,
            **counts,
            "left_out": dict(left_out),
            "dry_run": request.dry_run,
            "seen_seq": seq,
        }
        show_json(summary)
        return
    if request.dry_run:
        for mark, names in ("+", added), ("~", changed), ("-", changes.removed):
            for name in names:
                typer.echo(f"{mark} {make_printable(name)}")
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    typer.echo(f"{make_printable(request.collection)}: {told}")
    for reason, count in left_out.most_common():
        typer.echo(f"{count:,} left out: {reason.replace('_', ' ')}")
    if request.dry_run:
        typer.echo("Nothing was sent.")
