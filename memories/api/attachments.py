"""`/api/v1/memories/{id}/attachments`: files kept with a memory."""

from functools import partial
from typing import Annotated

from django.http import StreamingHttpResponse
from pydantic import StringConstraints
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from memories.api.opening import from_query
from memories.attachments import attach, attachments_of, delete_attachment, find_attachment, parts_of_file
from memories.file_types import TYPES
from memories.models import Attachment
from memories.store import find_memory
from memoryconsole.downloading import download
from memoryconsole.endpoints import Endpoint, Nothing
from memoryconsole.files import FILE_PARSERS, file_in
from memoryconsole.inputs import Input, Text
from memoryconsole.presenting import Id, When, when
from memoryconsole.schema import documented


class AttachmentQuery(Input):
    """`name` is the file name, if it is not sent in a form."""

    name: Annotated[Text, StringConstraints(max_length=255)] = ""


class AttachmentJson(TypedDict):
    """`contentType` is detected from the bytes; `sha256` is their hash."""

    id: Id
    memoryId: Id
    name: str
    contentType: str
    size: int
    sha256: str
    createdAt: When


class AttachmentsJson(TypedDict):
    attachments: list[AttachmentJson]


class OneAttachmentJson(TypedDict):
    attachment: AttachmentJson


class AttachmentDeletedJson(TypedDict):
    deleted: int


class Attachments(Endpoint):
    parser_classes = FILE_PARSERS

    @documented("listAttachments", "The files kept with a memory", answers={200: AttachmentsJson})
    def get(self, request: Request, id: str) -> Response:
        scope, _ = from_query(request, Nothing)
        memory = find_memory(scope, id)
        answer: AttachmentsJson = {"attachments": [attachment_json(each) for each in attachments_of(scope, memory)]}
        return Response(answer)

    @documented(
        "attachFile",
        "Keep a file with a memory",
        query=AttachmentQuery,
        answers={201: OneAttachmentJson},
        files=["multipart/form-data", "application/octet-stream"],
    )
    def post(self, request: Request, id: str) -> Response:
        scope, wanted = from_query(request, AttachmentQuery)
        scope.require_write()
        stream, name = file_in(request)
        answer: OneAttachmentJson = {"attachment": attachment_json(attach(scope, id, stream, name=wanted.name or name))}
        return Response(answer, status=201)


class OneAttachment(Endpoint):
    @documented("downloadAttachment", "Download a file", answers={}, downloads=TYPES)
    def get(self, request: Request, id: str, attachmentId: str) -> StreamingHttpResponse:
        scope, _ = from_query(request, Nothing)
        attachment = find_attachment(scope, id, attachmentId)
        parts = partial(parts_of_file, attachment)
        return download(parts, name=attachment.name, content_type=attachment.content_type)

    @documented("deleteAttachment", "Remove a file for good", answers={200: AttachmentDeletedJson})
    def delete(self, request: Request, id: str, attachmentId: str) -> Response:
        scope, _ = from_query(request, Nothing)
        delete_attachment(scope, id, attachmentId)
        answer: AttachmentDeletedJson = {"deleted": 1}
        return Response(answer)


def attachment_json(attachment: Attachment) -> AttachmentJson:
    return {
        "id": str(attachment.id),
        "memoryId": str(attachment.memory_id),
        "name": attachment.name,
        "contentType": attachment.content_type,
        "size": attachment.size,
        "sha256": bytes(attachment.sha256).hex(),
        "createdAt": when(attachment.created_at),
    }
