"""`/api/v1/jobs`: work that takes longer than a request."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from accounts.access import Scope
from memories.activity import JobFilters, jobs, part_of_jobs, retry
from memories.api.opening import from_body, from_query
from memories.embedding.backfill import MOST, ask_for_embedding, find_job
from memories.models import Job
from memories.review.pairing import ask_for_pairs
from memoryconsole.endpoints import Endpoint, Nothing, Paging
from memoryconsole.inputs import Fraction, Input, Number
from memoryconsole.presenting import Id, PageJson, When, one_of, when
from memoryconsole.schema import ErrorJson, documented


class JobOptions(Input):
    """`limit` is the most vectors to make (all by default); `threshold` is the lowest cosine of a pair."""

    limit: Annotated[Number, Field(ge=1, le=MOST)] | None = None
    threshold: Annotated[Fraction, Field(ge=0.5, le=1)] | None = None


class JobDraft(Input):
    """`embed-memories` makes the vectors that memories are missing, `find-duplicates` compares memories by them."""

    kind: Literal["embed-memories", "find-duplicates"]
    payload: JobOptions = JobOptions()

    @field_validator("payload")
    @classmethod
    def _only_options_of_kind(cls, payload: JobOptions, info: ValidationInfo) -> JobOptions:
        own = {"embed-memories": {"limit"}, "find-duplicates": {"threshold"}}.get(info.data.get("kind", ""))
        if own is not None and not payload.model_dump(exclude_none=True).keys() <= own:
            raise ValueError(f"{info.data['kind']} takes {' and '.join(sorted(own))} only.")
        return payload


class JobJson(TypedDict):
    id: Id
    instanceId: str
    kind: str
    state: Annotated[str, one_of(Job.State.values)]
    done: int
    total: int
    attempts: int
    tokens: int
    error: str | None
    conversationId: Id | None
    payload: dict[str, Any]
    result: dict[str, Any]
    createdAt: When
    startedAt: When | None
    finishedAt: When | None


class OneJobJson(TypedDict):
    job: JobJson


class RetriedJson(TypedDict):
    job: JobJson | None


class JobsJson(PageJson):
    jobs: list[JobJson]


class JobsQuery(JobFilters, Paging):
    """Newest first. Finished jobs are kept for 30 days."""

    def filters(self) -> JobFilters:
        return JobFilters(**self.model_dump(include=set(JobFilters.model_fields), exclude_none=True))


class Jobs(Endpoint):
    @documented("listJobs", "What the worker did and is doing", query=JobsQuery, answers={200: JobsJson})
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, JobsQuery)
        filters = wanted.filters()
        found, following = part_of_jobs(scope, filters, **wanted.place)
        answer: JobsJson = {
            **wanted.page_json(jobs(scope, filters).count(), following),
            "jobs": [job_json(job, scope.instance.slug) for job in found],
        }
        return Response(answer)

    @documented("startJob", "Have the worker do something", body=JobDraft, instance="body", answers={202: OneJobJson})
    def post(self, request: Request) -> Response:
        scope, draft = from_body(request, JobDraft)
        job = start(scope, draft)
        answer: OneJobJson = {"job": job_json(job, scope.instance.slug)}
        return Response(answer, status=202)


class OneJob(Endpoint):
    @documented("getJob", "How far a job is", answers={200: OneJobJson})
    def get(self, request: Request, id: str) -> Response:
        scope, _ = from_query(request, Nothing)
        answer: OneJobJson = {"job": job_json(find_job(scope, id), scope.instance.slug)}
        return Response(answer)


class Retry(Endpoint):
    @documented(
        "retryJob",
        "Do again what has failed; no job when the same is waiting already, which is tried now then",
        body=Nothing,
        instance="body",
        answers={202: RetriedJson, 409: ErrorJson},
    )
    def post(self, request: Request, id: str) -> Response:
        scope, _ = from_body(request, Nothing)
        job = retry(scope, id)
        answer: RetriedJson = {"job": job_json(job, scope.instance.slug) if job else None}
        return Response(answer, status=202)


def start(scope: Scope, draft: JobDraft) -> Job:
    if draft.kind == "find-duplicates":
        return ask_for_pairs(scope, threshold=draft.payload.threshold)
    return ask_for_embedding(scope, limit=draft.payload.limit)


def job_json(job: Job, instance: str) -> JobJson:
    return {
        "id": str(job.id),
        "instanceId": instance,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "total": job.total,
        "attempts": job.attempts,
        "tokens": job.tokens,
        "error": job.error or None,
        "conversationId": str(job.conversation_id) if job.conversation_id else None,
        # Clients need not know where a file is stored.
        "payload": {name: value for name, value in job.payload.items() if name != "path"},
        "result": job.result,
        "createdAt": when(job.created_at),
        "startedAt": when(job.started_at) if job.started_at else None,
        "finishedAt": when(job.finished_at) if job.finished_at else None,
    }
