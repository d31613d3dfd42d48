"""`/api/v1/procedures`: steps an assistant has learnt, and which of them fit what was said."""

from typing import Annotated, NotRequired, cast

from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from memories.api.opening import from_body, from_query, from_query_or_body
from memories.models import Procedure
from memories.procedures.matching import Match, matches
from memories.procedures.store import (
    MAX_PROCEDURES,
    ProcedureChanges,
    ProcedureDraft,
    change_procedure,
    count_use,
    create_procedure,
    delete_procedure,
    find_procedure,
    most_used,
)
from memoryconsole.endpoints import Endpoint, Nothing, Slice
from memoryconsole.inputs import Words
from memoryconsole.presenting import Id, SliceJson, When, when
from memoryconsole.schema import ErrorJson, documented


class ProceduresQuery(Slice):
    """Without `match` all procedures, with it those whose name or trigger fits that text, best first."""

    match: Annotated[Words, Field(max_length=10_000)] = ""


class ProcedureJson(TypedDict):
    id: Id
    instanceId: str
    name: str
    trigger: str | None
    steps: list[str]
    usageCount: int
    lastUsedAt: When | None
    createdAt: When
    updatedAt: When


class MatchJson(ProcedureJson):
    score: NotRequired[float]
    similarity: NotRequired[float | None]
    matched: NotRequired[list[str]]


class ProceduresJson(SliceJson):
    procedures: list[MatchJson]


class OneProcedureJson(TypedDict):
    procedure: ProcedureJson


class ProcedureDeletedJson(TypedDict):
    deleted: int


class Procedures(Endpoint):
    @documented(
        "listProcedures",
        "List procedures, most used first, or those that fit a text",
        query=ProceduresQuery,
        answers={200: ProceduresJson},
    )
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, ProceduresQuery)
        slug = scope.instance.slug
        if wanted.match:
            found = matches(scope, wanted.match, limit=MAX_PROCEDURES)
            total, shown = len(found), [match_json(match, slug) for match in found[wanted.places]]
        else:
            rows = most_used(scope)
            total, shown = rows.count(), [cast(MatchJson, procedure_json(each, slug)) for each in rows[wanted.places]]
        answer: ProceduresJson = {**wanted.slice_json(total), "procedures": shown}
        return Response(answer)

    @documented(
        "createProcedure",
        "Create a procedure",
        body=ProcedureDraft,
        instance="body",
        answers={201: OneProcedureJson, 409: ErrorJson},
    )
    def post(self, request: Request) -> Response:
        scope, draft = from_body(request, ProcedureDraft)
        procedure = create_procedure(scope, draft)
        return Response(one(procedure, scope.instance.slug), status=201)


class OneProcedure(Endpoint):
    @documented("getProcedure", "Get a procedure", answers={200: OneProcedureJson})
    def get(self, request: Request, id: str) -> Response:
        scope, _ = from_query(request, Nothing)
        return Response(one(find_procedure(scope, id), scope.instance.slug))

    @documented(
        "changeProcedure",
        "Change a procedure",
        body=ProcedureChanges,
        instance="either",
        answers={200: OneProcedureJson, 409: ErrorJson},
    )
    def patch(self, request: Request, id: str) -> Response:
        scope, changes = from_query_or_body(request, ProcedureChanges)
        return Response(one(change_procedure(scope, id, changes), scope.instance.slug))

    @documented("deleteProcedure", "Delete a procedure for good", answers={200: ProcedureDeletedJson})
    def delete(self, request: Request, id: str) -> Response:
        scope, _ = from_query(request, Nothing)
        delete_procedure(scope, id)
        answer: ProcedureDeletedJson = {"deleted": 1}
        return Response(answer)


class Used(Endpoint):
    @documented(
        "useProcedure",
        "Count that a procedure was followed",
        body=Nothing,
        instance="body",
        answers={200: OneProcedureJson},
    )
    def post(self, request: Request, id: str) -> Response:
        scope, _ = from_body(request, Nothing)
        return Response(one(count_use(scope, id), scope.instance.slug))


def one(procedure: Procedure, instance: str) -> OneProcedureJson:
    return {"procedure": procedure_json(procedure, instance)}


def match_json(match: Match, instance: str) -> MatchJson:
    answer = cast(MatchJson, procedure_json(match.procedure, instance))
    answer["score"] = round(match.score, 6)
    answer["similarity"] = match.similarity
    answer["matched"] = match.matched
    return answer


def procedure_json(procedure: Procedure, instance: str) -> ProcedureJson:
    return {
        "id": str(procedure.id),
        "instanceId": instance,
        "name": procedure.name,
        "trigger": procedure.trigger or None,
        "steps": procedure.steps,
        "usageCount": procedure.usage_count,
        "lastUsedAt": when(procedure.last_used_at) if procedure.last_used_at else None,
        "createdAt": when(procedure.created_at),
        "updatedAt": when(procedure.updated_at),
    }
