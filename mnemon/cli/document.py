"""`mnemon document`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.asking import MinSeqOption, TenantOption, UserOption, ask
from mnemon.cli.ending import Ending, refuse
from mnemon.cli.output import JsonOption
from mnemon.cli.target import DataOption

if TYPE_CHECKING:
    from contracts.tools import DocumentReplyV1

app = typer.Typer(no_args_is_help=True, help="See and change the texts that a search finds.")

CollectionOption = Annotated[
    str | None, typer.Option(help="What it belongs to, such as a repository; without it: all.")
]


@app.command("list")
def list_(
    tenant: TenantOption,
    user: UserOption,
    collection: CollectionOption = None,
    min_seq: MinSeqOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the documents, by id.

    Example: `mnemon document list --tenant acme --user u42`
    """
    ask(
        lambda memory: memory.documents(user, collection=collection, min_seq=min_seq),
        _show,
        tenant=tenant,
        data=data,
        as_json=as_json,
    )


@app.command("add")
def add(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A text file, in UTF-8.")],
    tenant: TenantOption,
    user: UserOption,
    document_id: Annotated[
        str | None, typer.Option("--id", help="The same id again is a new version; without it: the path.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="How it is called; without it: the file's name.")] = None,
    collection: CollectionOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a file searchable, and show the documents of its collection.

    Example: `mnemon document add handbook.md --collection handbook --tenant acme --user u42`
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        refuse(Ending.WRONG_USE, f"{file}: {error}")
    ask(
        lambda memory: memory.add_document(
            user,
            text,
            document_id=document_id or str(file),
            title=title or file.name,
            source=str(file),
            collection=collection,
        ),
        _show,
        tenant=tenant,
        data=data,
        as_json=as_json,
    )


@app.command("remove")
def remove(
    document_id: Annotated[str, typer.Argument(metavar="ID", help="The document.")],
    tenant: TenantOption,
    user: UserOption,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a document, and show what is left.

    Ends with 1 when there is no such document.

    Example: `mnemon document remove handbook.md --tenant acme --user u42`
    """
    ask(
        lambda memory: memory.remove_document(user, document_id),
        _show,
        tenant=tenant,
        data=data,
        as_json=as_json,
        absent=f"mnemon document list --tenant {tenant} --user {user}",
    )


def _show(reply: "DocumentReplyV1") -> None:
    for document in reply.documents:
        place = f" [in:{document.collection}]" if document.collection else ""
        typer.echo(f"- [id:{document.document_id}]{place} {document.title or ''}".rstrip())
    if not reply.documents:
        typer.echo("no documents")
