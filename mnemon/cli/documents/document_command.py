"""Command `mnemon document`: list, add and remove documents of a user."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.memory.requests import MemoryRequest, MinSeqOption
from mnemon.cli.options.option_group import expand_options
from mnemon.cli.options.target import require_deployment
from mnemon.cli.terminal.exit_code import ExitCode, perform_command, refuse
from mnemon.display_text import make_printable

if TYPE_CHECKING:
    from mnemon_contracts.verbs.tools import DocumentReplyV1

app = typer.Typer(no_args_is_help=True, help="List, add and remove documents, which searches can find.")

CollectionOption = Annotated[
    str | None,
    typer.Option(
        help="List only documents of this collection, such as a repository. Default: all documents."
    ),
]


@app.command("list")
@expand_options
def list_(
    request: MemoryRequest,
    collection: CollectionOption = None,
    min_seq: MinSeqOption = None,
) -> None:
    """List a user's documents, ordered by id.

    Example: `mnemon document list --tenant acme --user u42`
    """
    request.send(
        lambda memory: memory.documents(request.user, collection=collection, min_seq=min_seq), _show_documents
    )


@app.command("add")
@expand_options
def add(
    path: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", exists=True, help="Text file in UTF-8, or folder of files.")
    ],
    request: MemoryRequest,
    document_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="For a file: id of the document; an existing document with this id is replaced. "
            "Default: the path, as given.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="For a file: title of the document. Default: the name of the file.")
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(
            help="Collection of the documents, such as a repository. Default: for a file, none; for a "
            "folder, its name."
        ),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="For a folder: maximum size of a file, in bytes; larger files are left out. "
            "Default: 262144.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="For a folder: show the changes without sending them.")
    ] = False,
    remove_gone: Annotated[
        bool,
        typer.Option(
            "--remove",
            help="For a folder: remove the documents of missing files even if more than half of "
            "the files are missing.",
        ),
    ] = False,
) -> None:
    """Index a file, or the text files of a folder or git repository, for search.

    In a repository, the command indexes tracked files and new files that git does not ignore. The next run on
    the same folder sends only new and changed files, and removes the documents of missing files; a file that
    has become too large, empty, binary or a link counts as missing. Search hits give the line numbers of the
    chunk.

    Exits with code 1, and sends nothing, if a folder has no files apart from ignored ones. The same applies
    if more than half of the files in its collection are missing, unless --remove or --dry-run is given. Exits
    with code 1, after all other changes, if a folder inside DIR cannot be read.

    Example: `mnemon document add handbook.md --collection handbook --tenant acme --user u42`

    Example: `mnemon document add . --collection shop --tenant acme --user u42`
    """
    if path.is_dir():
        from mnemon.cli.documents.folder import FolderRequest, add_folder
        from mnemon.operations.folder_index.files import MAX_BYTES

        if document_id is not None or title is not None:
            refuse(
                ExitCode.USAGE_ERROR,
                f"{path} is a folder: leave out --id and --title, which apply to a file",
            )
        folder = FolderRequest(
            target=request,
            folder=path,
            collection=collection or path.resolve().name,
            max_bytes=max_bytes or MAX_BYTES,
            dry_run=dry_run,
            remove=remove_gone,
        )
        perform_command(add_folder(require_deployment(request.data, "broker"), folder))
    if max_bytes is not None or dry_run or remove_gone:
        refuse(
            ExitCode.USAGE_ERROR,
            f"{path} is a file: leave out --max-bytes, --dry-run and --remove, which apply to a folder",
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        refuse(ExitCode.USAGE_ERROR, f"{path} cannot be read: {reason}", "Give a text file in UTF-8")
    request.send(
        lambda memory: memory.add_document(
            request.user,
            text,
            document_id=document_id or str(path),
            title=title or path.name,
            source=str(path),
            collection=collection,
        ),
        _show_documents,
    )


@app.command("remove")
@expand_options
def remove(
    document_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the document, as `mnemon document list` shows it.")
    ],
    request: MemoryRequest,
) -> None:
    """Remove a document, and list the remaining ones.

    Exits with code 1 if no document has the id.

    Example: `mnemon document remove handbook.md --tenant acme --user u42`
    """
    request.send(
        lambda memory: memory.remove_document(request.user, document_id),
        _show_documents,
        list_command="document list",
    )


def _show_documents(reply: "DocumentReplyV1") -> None:
    for document in reply.documents:
        place = f" [in:{document.collection}]" if document.collection else ""
        line = f"- [id:{document.document_id}]{place} {document.title or ''}".rstrip()
        typer.echo(make_printable(line))
    if not reply.documents:
        typer.echo("no documents")
