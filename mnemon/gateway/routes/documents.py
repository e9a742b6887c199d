"""Route that adds a document by its text: `curl --upload-file` is enough."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from mnemon.gateway.callers import CallerOfRequest
from mnemon.gateway.routes.parameters import Memory, User
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.verbs.tools import DocumentReplyV1, DocumentV1

_BODY = {"requestBody": {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}}


def create_document_routes() -> APIRouter:
    """Return the route `PUT /v1/users/{user}/documents/{document_id}`."""
    router = APIRouter(tags=["documents"])
    router.add_api_route(
        "/v1/users/{user:path}/documents/{document_id}",
        _upload_document,
        methods=["PUT"],
        operation_id="upload_document",
        summary="Add a document, or replace it",
        response_model=DocumentReplyV1,
        openapi_extra=_BODY,
    )
    return router


async def _upload_document(
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
    caller: CallerOfRequest,
    memory: Memory,
    title: Annotated[str | None, Query(description="Title of the document.")] = None,
    source: Annotated[str | None, Query(description="Source of the document: a path or a URL.")] = None,
    collection: Annotated[
        str | None, Query(description="Collection of the document, such as a repository.")
    ] = None,
) -> Response:
    """Add the text in the body, in UTF-8, as a document of the user."""
    caller.require_permission("write", user)
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise InvalidBody("body", "is not UTF-8; send the text of the document in UTF-8") from error
    wanted = DocumentV1.create_strict(
        action="add",
        document_id=document_id,
        text=text,
        title=title,
        source=source,
        collection=collection,
    )
    found = await memory.get_questioner(caller.tenant).ask(user, "document", wanted, DocumentReplyV1)
    return Response(found.serialize(), HTTPStatus.OK, media_type="application/json")
