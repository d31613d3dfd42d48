"""`/api/v1/export` and `/api/v1/import`: memories to a file and from a file."""

from functools import partial
from typing import Annotated, Any, Literal

from django.http import StreamingHttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from memories.api.jobs import JobJson, OneJobJson, job_json
from memories.api.opening import from_query
from memories.draft import Name
from memories.filters import Filters
from memories.models import Job
from memories.transfer import uploads
from memories.transfer.exporting import CONTENT_TYPES, export
from memories.transfer.formats.detecting import FORMATS
from memoryconsole.downloading import download
from memoryconsole.endpoints import Endpoint
from memoryconsole.errors import Invalid
from memoryconsole.files import FILE_PARSERS, file_in
from memoryconsole.inputs import Input
from memoryconsole.presenting import one_of
from memoryconsole.schema import documented


class ExportQuery(Filters):
    """The filters of the list. `vectors` adds the vectors, only to JSON lines."""

    format: Literal["jsonl", "csv"] = "jsonl"
    vectors: bool = False


class ImportQuery(Input):
    """`format` is detected if it is left out. With `dryRun` nothing is stored."""

    format: Literal["", "auto", "jsonl", "csv", "mem0", "chatgpt"] = ""
    dry_run: bool = False
    name: Name = ""


class ImportProblemJson(TypedDict):
    line: int
    errors: dict[str, list[str]]


class ImportJson(TypedDict):
    """`format` is the format the file was read as. Of its `rows`, `created` were stored, `existing` were there already,
    `leftOut` were skipped and `invalid` cannot be used. `problems` has the first of them."""

    dryRun: bool
    format: Annotated[str, one_of(list(FORMATS))]
    rows: int
    created: int
    existing: int
    leftOut: int
    invalid: int
    redacted: int
    droppedLinks: int
    problems: list[ImportProblemJson]


# `import` is a keyword, so this cannot be written as a class.
OneImportJson = TypedDict("OneImportJson", {"import": ImportJson, "job": JobJson})


class Export(Endpoint):
    @documented(
        "exportMemories",
        "All memories that match, oldest first, as JSON lines or CSV",
        query=ExportQuery,
        answers={},
        downloads=[type.partition(";")[0] for type in CONTENT_TYPES.values()],
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        scope, wanted = from_query(request, ExportQuery, "tag")
        name = f"{scope.instance.slug}-{timezone.now():%Y-%m-%d}.{wanted.format}"
        parts = partial(export, scope, wanted, wanted.format, vectors=wanted.vectors)
        return download(parts, name=name, content_type=CONTENT_TYPES[wanted.format])


class Import(Endpoint):
    parser_classes = FILE_PARSERS

    @documented(
        "importMemories",
        "Store what is new in a file: JSON lines, CSV, mem0's export or ChatGPT's memories",
        query=ImportQuery,
        answers={200: OneImportJson, 202: OneJobJson},
        files=["multipart/form-data", "application/octet-stream"],
    )
    def post(self, request: Request) -> Response:
        scope, wanted = from_query(request, ImportQuery)
        scope.require_write()
        stream, name = file_in(request)
        format = uploads.format_named(wanted.format)
        job = uploads.keep_upload(scope, stream, name=wanted.name or name, format=format, dry_run=wanted.dry_run)
        job = uploads.start(scope, job)
        if job.state == Job.State.FAILED:
            raise Invalid({"file": [job.error]})
        return _answer(job, scope.instance.slug)


def _answer(job: Job, slug: str) -> Response:
    shown = job_json(job, slug)
    if job.state != Job.State.DONE:
        return Response({"job": shown}, status=202)
    report: dict[str, Any] = {"dryRun": job.payload["dryRun"], **job.payload["report"]}
    return Response({"import": report, "job": shown})
