"""Route that adds a document by its text: `curl --upload-file` is enough."""

from http import HTTPStatus
from typing import Annotated, Final, NamedTuple
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from mnemon.gateway.callers import CallerOfRequest
from mnemon.gateway.problems import Problem
from mnemon.gateway.routes.parameters import Memory, User
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.verbs.tools import DocumentReplyV1, DocumentV1

_PREFIX: Final = "/v1/users/"
_SEPARATOR: Final = "/documents/"
_BODY = {"requestBody": {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}}


def create_document_routes() -> APIRouter:
    """Return the route `PUT /v1/users/{user}/documents/{document_id}`."""
    router = APIRouter(tags=["documents"])
    router.add_api_route(
        f"{_PREFIX}{{user:path}}{_SEPARATOR}{{document_id:path}}",
        _upload_document,
        methods=["PUT"],
        operation_id="upload_document",
        summary="Add a document, or replace it",
        response_model=DocumentReplyV1,
        openapi_extra=_BODY,
    )
    return router


class DocumentAddress(NamedTuple):
    """User and id of a document."""

    user: str
    document_id: str


async def _parse_address(
    request: Request,
    user: User,
    document_id: Annotated[
        str,
        Path(
            description="Id of the document; an existing document with this id is replaced.",
            min_length=1,
            max_length=255,
        ),
    ],
) -> DocumentAddress:
    """Return the ids in the path as it was sent, where slashes within an id are percent-encoded.

    The framework decodes the path first, and would separate `u1` and `a/documents/b` at the wrong place.

    Raises:
        Problem: the path has no id of a document.
    """
    written = request.scope["raw_path"].decode()
    before, separator, after = written.removeprefix(_PREFIX).rpartition(_SEPARATOR)
    if not (written.startswith(_PREFIX) and separator):
        raise Problem(
            HTTPStatus.NOT_FOUND,
            "not_found",
            "the address has no id of a document: percent-encode slashes within ids, but not the slashes "
            "between the parts of the path",
        )
    return DocumentAddress(unquote(before), unquote(after))


async def _upload_document(
    request: Request,
    address: Annotated[DocumentAddress, Depends(_parse_address)],
    caller: CallerOfRequest,
    memory: Memory,
    title: Annotated[str | None, Query(description="Title of the document.")] = None,
    source: Annotated[str | None, Query(description="Source of the document: a path or a URL.")] = None,
    collection: Annotated[
        str | None, Query(description="Collection of the document, such as a repository.")
    ] = None,
) -> Response:
    """Add the text in the body, in UTF-8, as a document of the user."""
    caller.require_permission("write", address.user)
    try:
        text = (await request.body()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidBody("body", "is not UTF-8; send the text of the document in UTF-8") from error
    wanted = DocumentV1.create_strict(
        action="add",
        document_id=address.document_id,
        text=text,
        title=title,
        source=source,
        collection=collection,
    )
    found = await memory.get_questioner(caller.tenant).ask(address.user, "document", wanted, DocumentReplyV1)
    return Response(found.serialize(), HTTPStatus.OK, media_type="application/json")
