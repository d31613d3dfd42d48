"""`/api/v1/jobs`: work that takes longer than a request."""

from typing import Annotated, Any, Literal

from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from accounts.api_authentication import open_named
from memories.backfill import MOST, ask_for_embedding, find_job
from memories.models import Job
from memoryconsole.endpoints import Endpoint, Nothing, body, query
from memoryconsole.inputs import Input, Number, read
from memoryconsole.presenting import Id, When, one_of, when
from memoryconsole.schema import documented


class EmbeddingOptions(Input):
    """At most `limit` vectors; all that are missing without it."""

    limit: Annotated[Number, Field(ge=1, le=MOST)] | None = None


class JobDraft(Input):
    """`embed-memories` makes the vectors that memories are missing."""

    kind: Literal["embed-memories"]
    payload: EmbeddingOptions = EmbeddingOptions()


class JobJson(TypedDict):
    id: Id
    instanceId: str
    kind: str
    state: Annotated[str, one_of(Job.State.values)]
    done: int
    total: int
    error: str | None
    payload: dict[str, Any]
    createdAt: When
    finishedAt: When | None


class OneJobJson(TypedDict):
    job: JobJson


class Jobs(Endpoint):
    @documented("startJob", "Have the worker do something", body=JobDraft, instance="body", answers={202: OneJobJson})
    def post(self, request: Request) -> Response:
        data = body(request)
        scope = open_named(request, data)
        draft = read(JobDraft, data)
        job = ask_for_embedding(scope, limit=draft.payload.limit)
        answer: OneJobJson = {"job": job_json(job, scope.instance.slug)}
        return Response(answer, status=202)


class OneJob(Endpoint):
    @documented("getJob", "How far a job is", answers={200: OneJobJson})
    def get(self, request: Request, id: str) -> Response:
        data = query(request)
        scope = open_named(request, data)
        read(Nothing, data)
        answer: OneJobJson = {"job": job_json(find_job(scope, id), scope.instance.slug)}
        return Response(answer)


def job_json(job: Job, instance: str) -> JobJson:
    return {
        "id": str(job.id),
        "instanceId": instance,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "total": job.total,
        "error": job.error or None,
        # Where a file is kept is nobody's business.
        "payload": {name: value for name, value in job.payload.items() if name != "path"},
        "createdAt": when(job.created_at),
        "finishedAt": when(job.finished_at) if job.finished_at else None,
    }
