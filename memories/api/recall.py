"""`/api/v1/recall` and `/api/v1/recalls`: recall memories, and read the log of recalls with explanations."""

from typing import Annotated, Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from memories.api.opening import from_body, from_query
from memories.audit import note_private_reads
from memories.draft import Name
from memories.filters import NotEmpty
from memories.paging import Order, name_of_list, part_of_list
from memories.recall.log import account_in, find_recall, recalls_of
from memories.recall.presenting import (
    FullLoggedJson,
    LoggedJson,
    RecallJson,
    WhyJson,
    full_logged_json,
    logged_json,
    recall_json,
    why_json,
)
from memories.recall.recalling import RecallRequest, recall
from memories.recall.replay import replay
from memories.recall.why import why
from memoryconsole.endpoints import Endpoint, Nothing, Paging
from memoryconsole.inputs import Input
from memoryconsole.presenting import Id, PageJson
from memoryconsole.schema import documented

NEWEST = Order(("id",))


class RecallsQuery(Paging):
    """Filters: the recalls for an end user, in a conversation, or that gave a memory."""

    user_id: Annotated[Name | None, NotEmpty] = None
    conversation_id: Annotated[UUID | None, NotEmpty] = None
    memory_id: Annotated[UUID | None, NotEmpty] = None

    def filters(self) -> dict[str, Any]:
        return self.model_dump(exclude=set(Paging.model_fields), exclude_none=True)


class WhyQuery(Input):
    memory_id: Id


class RecallsJson(PageJson):
    recalls: list[LoggedJson]


class OneRecallJson(TypedDict):
    recall: FullLoggedJson


class OneWhyJson(TypedDict):
    why: WhyJson


class Recalling(Endpoint):
    @documented(
        "recall",
        "What to tell the assistant before it answers, as one prompt block",
        body=RecallRequest,
        instance="body",
        answers={200: RecallJson},
    )
    def post(self, request: Request) -> Response:
        scope, wanted = from_body(request, RecallRequest)
        recalled = recall(scope, wanted)
        note_private_reads(scope, [given.memory for given in recalled.memories])
        return Response(recall_json(recalled, scope.instance.slug, explain=wanted.explain))


class Recalls(Endpoint):
    @documented("listRecalls", "The log of recalls, newest first", query=RecallsQuery, answers={200: RecallsJson})
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, RecallsQuery)
        filters = wanted.filters()
        rows = recalls_of(scope, **filters)
        name = name_of_list("recalls", scope.instance.id, filters)
        found, following = part_of_list(rows.defer("explanation"), NEWEST, name, **wanted.place)
        answer: RecallsJson = {
            **wanted.page_json(rows.count(), following),
            "recalls": [logged_json(row, scope.instance.slug) for row in found],
        }
        return Response(answer)


class OneRecall(Endpoint):
    @documented("getRecall", "A past recall with its full explanation", answers={200: OneRecallJson})
    def get(self, request: Request, id: str) -> Response:
        scope, _ = from_query(request, Nothing)
        row = find_recall(scope, id)
        account = account_in(row)
        answer = full_logged_json(row, account, replay(scope, account), scope.instance.slug)
        return Response({"recall": answer})


class WhyRecalled(Endpoint):
    @documented("whyRecalled", "Why a memory was recalled, or why not", query=WhyQuery, answers={200: OneWhyJson})
    def get(self, request: Request, id: str) -> Response:
        scope, wanted = from_query(request, WhyQuery)
        found = why(scope, account_in(find_recall(scope, id)), wanted.memory_id)
        return Response({"why": why_json(found, scope.instance.slug)})
