"""`/api/v1/memories`: list, search, save, change, delete, versions and similar memories."""

from dataclasses import asdict
from typing import Annotated, Literal, NotRequired, Self
from uuid import UUID

from pydantic import Field, model_validator
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from accounts.access import Scope
from memories import deletion, store, versions
from memories.api.opening import from_body, from_query, from_query_or_body
from memories.audit import note_private_reads
from memories.draft import MemoryChanges, MemoryDraft
from memories.filters import Filters
from memories.listing import list_from
from memories.presenting import (
    MemoriesJson,
    MemoryJson,
    SavedJson,
    VersionJson,
    found_json,
    listing_json,
    memory_json,
    saved_json,
    version_json,
)
from memories.search.hybrid import search
from memories.search.sharing import find_own_or_shared
from memories.search.similar import similar
from memoryconsole.endpoints import Endpoint, Nothing, Paging, Slice
from memoryconsole.errors import Conflict, Invalid
from memoryconsole.inputs import Input, Limit, Number, Words
from memoryconsole.presenting import SliceJson
from memoryconsole.schema import ErrorJson, documented

MAX_AT_ONCE = 1000
LARGEST_INTEGER = 2**31 - 1


class MemoriesQuery(Filters, Paging):
    """Without `search` the newest first, with it the best hits first."""

    search: Annotated[Words, Field(max_length=10_000)] = ""
    mode: Literal["hybrid", "keyword", "vector"] = "hybrid"
    explain: bool = False


class OneOfMany(MemoryDraft):
    """A new memory of a list, whose instance is named once. `kind` is accepted for `category`, `type` for `role`."""


class MemoryDrafts(Input):
    memories: Annotated[list[OneOfMany], Field(min_length=1, max_length=MAX_AT_ONCE)]


class Deletion(Input):
    """Delete exactly these `ids`, or everything that matches `filter` if that is still the `expected` number."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=MAX_AT_ONCE)] | None = None
    filter: Filters | None = None
    expected: Annotated[Number, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _ids_or_filter(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("Send ids, or filter with expected.")
        if (self.filter is None) != (self.expected is None):
            raise ValueError("expected goes with filter: the number of memories you saw matching.")
        return self


class Restoration(Input):
    """`version` is the one to bring back; without it a superseded memory becomes active again with its current text."""

    version: Annotated[Number, Field(ge=1, le=LARGEST_INTEGER)] | None = None


class ManySavedJson(TypedDict):
    memories: list[MemoryJson]
    redacted: NotRequired[dict[str, list[str]]]


class OneMemoryJson(TypedDict):
    memory: MemoryJson


class SimilarJson(MemoryJson):
    similarity: float


class SimilarsJson(TypedDict):
    memories: list[SimilarJson]


class VersionsJson(SliceJson):
    versions: list[VersionJson]


class ReceiptJson(TypedDict):
    deleted: int
    versions: int
    chunks: int
    embeddings: int
    attachments: int


class KeyTakenJson(ErrorJson):
    memory: NotRequired[MemoryJson]


class StaleExpectationJson(ErrorJson):
    matching: int


class Memories(Endpoint):
    @documented(
        "listMemories", "List memories, newest first, or search them", query=MemoriesQuery, answers={200: MemoriesJson}
    )
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, MemoriesQuery, "tag")
        if wanted.search:
            return Response(_found(scope, wanted))
        listing = list_from(scope, wanted, **wanted.place)
        return Response(listing_json(listing, scope.instance.slug, limit=wanted.limit, offset=wanted.offset))

    @documented(
        "saveMemory",
        "Save a memory",
        body=MemoryDraft,
        instance="body",
        answers={201: SavedJson, 200: SavedJson, 409: KeyTakenJson},
    )
    def post(self, request: Request) -> Response:
        scope, draft = from_body(request, MemoryDraft)
        try:
            saved = store.save(scope, draft)
        except Conflict as conflict:
            if "memory" in conflict.extra:
                note_private_reads(scope, [conflict.extra["memory"]])
                conflict.extra["memory"] = memory_json(conflict.extra["memory"], scope.instance.slug)
            raise
        return Response(saved_json(saved, scope.instance.slug), status=201 if saved.event == "created" else 200)


class MemoriesInBulk(Endpoint):
    @documented(
        "saveMemories",
        "Save up to 1,000 memories, all or none",
        body=MemoryDrafts,
        instance="body",
        answers={201: ManySavedJson, 409: KeyTakenJson},
    )
    def post(self, request: Request) -> Response:
        scope, drafts = from_body(request, MemoryDrafts)
        stored = store.save_many(scope, drafts.memories)
        answer: ManySavedJson = {"memories": [memory_json(saved.memory, scope.instance.slug) for saved in stored]}
        if redacted := {str(saved.memory.id): list(saved.redacted) for saved in stored if saved.redacted}:
            answer["redacted"] = redacted
        return Response(answer, status=201)


class MemoriesDeletion(Endpoint):
    @documented(
        "deleteMemories",
        "Delete memories for good, by id or by filter, all or none",
        body=Deletion,
        instance="body",
        answers={200: ReceiptJson, 409: StaleExpectationJson},
    )
    def post(self, request: Request) -> Response:
        scope, wanted = from_body(request, Deletion)
        if wanted.filter is not None and wanted.expected is not None:
            receipt = deletion.delete_matching(scope, wanted.filter, expected=wanted.expected)
        else:
            receipt = deletion.delete_memories(scope, wanted.ids or [])
        return Response(asdict(receipt))


class OneMemory(Endpoint):
    @documented("getMemory", "Get a memory, of this instance or shared with it", answers={200: OneMemoryJson})
    def get(self, request: Request, id: str) -> Response:
        scope, _ = from_query(request, Nothing)
        memory, origin = find_own_or_shared(scope, id)
        answer: OneMemoryJson = {"memory": memory_json(memory, origin.slug)}
        return Response(answer)

    @documented(
        "changeMemory",
        "Change a memory; what it said before becomes a version",
        body=MemoryChanges,
        instance="either",
        answers={200: SavedJson, 409: KeyTakenJson},
    )
    def patch(self, request: Request, id: str) -> Response:
        scope, changes = from_query_or_body(request, MemoryChanges)
        saved = store.Saved(store.change(scope, id, changes), "updated", store.credentials_in(changes))
        return Response(saved_json(saved, scope.instance.slug))

    @documented("deleteMemory", "Delete a memory for good", answers={200: ReceiptJson})
    def delete(self, request: Request, id: str) -> Response:
        scope, _ = from_query(request, Nothing)
        return Response(asdict(deletion.delete_memory(scope, id)))


class History(Endpoint):
    @documented("listVersions", "What a memory said before, newest first", query=Slice, answers={200: VersionsJson})
    def get(self, request: Request, id: str) -> Response:
        scope, wanted = from_query(request, Slice)
        found = versions.history(scope, store.find_memory(scope, id))
        answer: VersionsJson = {
            **wanted.slice_json(found.count()),
            "versions": [version_json(version) for version in found[wanted.places]],
        }
        return Response(answer)


class SimilarQuery(Input):
    limit: Limit = 5


class Similar(Endpoint):
    @documented(
        "listSimilar", "The memories nearest to this one by vector", query=SimilarQuery, answers={200: SimilarsJson}
    )
    def get(self, request: Request, id: str) -> Response:
        scope, wanted = from_query(request, SimilarQuery)
        memory = store.find_memory(scope, id)
        near = [
            {**memory_json(other, scope.instance.slug), "similarity": cosine}
            for other, cosine in similar(scope, memory, wanted.limit)
        ]
        return Response({"memories": near})


class Restore(Endpoint):
    @documented(
        "restoreVersion",
        "Bring an earlier version back, or use a superseded memory again",
        body=Restoration,
        instance="body",
        answers={200: OneMemoryJson},
    )
    def post(self, request: Request, id: str) -> Response:
        scope, wanted = from_body(request, Restoration)
        memory = store.restore(scope, id, wanted.version)
        answer: OneMemoryJson = {"memory": memory_json(memory, scope.instance.slug)}
        return Response(answer)


def _found(scope: Scope, wanted: MemoriesQuery) -> MemoriesJson:
    if wanted.cursor:
        raise Invalid({"cursor": ["A search is paged by offset."]})
    results = search(scope, wanted.search, wanted, mode=wanted.mode, limit=wanted.limit, offset=wanted.offset)
    note_private_reads(scope, [hit.memory for hit in results.hits])
    part = {"limit": wanted.limit, "offset": wanted.offset}
    return found_json(results, scope.instance, **part, explain=wanted.explain)
