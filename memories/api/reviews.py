"""`/api/v1/reviews` and `/api/v1/memories/{id}/review`: memories that wait for review, and decisions about them."""

from dataclasses import asdict
from typing import Annotated, Literal, NotRequired, Self, cast
from uuid import UUID

from pydantic import Field, model_validator
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from accounts.access import Scope
from memories.api.memories import MAX_AT_ONCE, ReceiptJson
from memories.api.opening import from_body, from_query
from memories.draft import CategoryWord, Content, Importance, MemoryChanges
from memories.presenting import MemoryJson, memory_json
from memories.review import inbox
from memories.review.inbox import Waiting
from memoryconsole.endpoints import Endpoint, Paging
from memoryconsole.inputs import Input
from memoryconsole.presenting import PageJson
from memoryconsole.schema import ErrorJson, documented


class ReviewsQuery(Paging):
    """Memories that wait, newest first; `why` selects only possible conflicts, or only the others."""

    why: Literal["conflict", "importance"] | None = None


class ManyDecisions(Input):
    """One decision about many memories. Memories that have been reviewed already are skipped."""

    action: Literal["approve", "reject"]
    ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_AT_ONCE)]


class Decision(Input):
    """`approve` may correct `content`, `category` and `importance`; `merge` takes the merged `content`.

    `keep` approves a memory that may contradict another one; `reject` deletes it for good.
    """

    action: Literal["approve", "keep", "merge", "reject"]
    content: Content | None = None
    category: CategoryWord | None = None
    importance: Importance | None = None

    @model_validator(mode="after")
    def _only_what_the_action_takes(self) -> Self:
        takes = {"approve": {"content", "category", "importance"}, "merge": {"content"}}.get(self.action, set())
        for name in self.model_dump(exclude_none=True).keys() - {"action"} - takes:
            raise ValueError(f"{self.action} takes no {name}.")
        return self

    def changes(self) -> MemoryChanges:
        fields = self.model_dump(exclude={"action"}, exclude_none=True)
        return MemoryChanges(**fields, supersede_reason="corrected in review")


class ReviewJson(TypedDict):
    memory: MemoryJson
    reason: str
    conflictsWith: MemoryJson | None
    similarity: float | None


class ReviewsJson(PageJson):
    reviews: list[ReviewJson]


class ManyDecidedJson(TypedDict):
    approved: NotRequired[int]
    receipt: NotRequired[ReceiptJson]


class DecidedJson(TypedDict):
    event: Literal["approved", "kept", "merged", "rejected"]
    memory: NotRequired[MemoryJson]
    receipt: NotRequired[ReceiptJson]


class Reviews(Endpoint):
    @documented(
        "listReviews", "What waits for a decision, newest first", query=ReviewsQuery, answers={200: ReviewsJson}
    )
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, ReviewsQuery)
        found, following = inbox.part_waiting(scope, wanted.why, **wanted.place)
        answer: ReviewsJson = {
            **wanted.page_json(inbox.waiting(scope, wanted.why).count(), following),
            "reviews": [review_json(each, scope.instance.slug) for each in inbox.with_reasons(scope, found)],
        }
        return Response(answer)

    @documented(
        "decideMany",
        "Approve or reject many waiting memories",
        body=ManyDecisions,
        instance="body",
        answers={200: ManyDecidedJson},
    )
    def post(self, request: Request) -> Response:
        scope, wanted = from_body(request, ManyDecisions)
        if wanted.action == "approve":
            return Response({"approved": inbox.approve_many(scope, wanted.ids)})
        return Response({"receipt": asdict(inbox.reject(scope, wanted.ids))})


class OneReview(Endpoint):
    @documented(
        "decide",
        "Decide about a waiting memory",
        body=Decision,
        instance="body",
        answers={200: DecidedJson, 409: ErrorJson},
    )
    def post(self, request: Request, id: str) -> Response:
        scope, decision = from_body(request, Decision)
        return Response(decide(scope, id, decision))


def decide(scope: Scope, id: str, decision: Decision) -> DecidedJson:
    slug = scope.instance.slug
    if decision.action == "approve":
        return {"event": "approved", "memory": memory_json(inbox.approve(scope, id, decision.changes()), slug)}
    if decision.action == "keep":
        return {"event": "kept", "memory": memory_json(inbox.keep_both(scope, id), slug)}
    if decision.action == "merge":
        return {"event": "merged", "memory": memory_json(inbox.merge_waiting(scope, id, decision.content), slug)}
    scope.require_write()
    receipt = inbox.reject(scope, [inbox.find_waiting(scope, id).memory.id])
    return {"event": "rejected", "receipt": cast(ReceiptJson, asdict(receipt))}


def review_json(waiting: Waiting, instance: str) -> ReviewJson:
    return {
        "memory": memory_json(waiting.memory, instance),
        "reason": waiting.reason,
        "conflictsWith": memory_json(waiting.other, instance) if waiting.other else None,
        "similarity": waiting.similarity,
    }
