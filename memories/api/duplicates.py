"""`/api/v1/duplicates`: pairs of memories that say nearly the same, and deciding about them."""

from typing import Annotated, Literal

from pydantic import ValidationInfo, field_validator
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from memories.api.opening import from_body, from_query
from memories.draft import Content
from memories.models import DuplicatePair
from memories.presenting import MemoryJson, memory_json
from memories.review import duplicates
from memories.review.duplicates import Likeness
from memoryconsole.endpoints import Endpoint, Paging
from memoryconsole.inputs import Input
from memoryconsole.presenting import Id, PageJson, one_of
from memoryconsole.schema import ErrorJson, documented


class DuplicatesQuery(Paging):
    """Most similar first; `kind` selects only duplicates, or only possible conflicts."""

    kind: Literal["duplicate", "conflict"] | None = None


class PairDecision(Input):
    """`merge` supersedes the newer memory by the older one, whose text becomes `content` if sent; `keep` keeps both."""

    action: Literal["merge", "keep"]
    content: Content | None = None

    @field_validator("content")
    @classmethod
    def _content_only_for_merge(cls, content: str | None, info: ValidationInfo) -> str | None:
        if content is not None and info.data.get("action") == "keep":
            raise ValueError("keep takes no content.")
        return content


class PairJson(TypedDict):
    id: Id
    kind: Annotated[str, one_of(DuplicatePair.Kind.values)]
    similarity: float
    older: MemoryJson
    newer: MemoryJson


class PairsJson(PageJson):
    duplicates: list[PairJson]


class PairDecidedJson(TypedDict):
    event: Literal["merged", "kept"]
    memory: MemoryJson


class Duplicates(Endpoint):
    @documented(
        "listDuplicates",
        "Pairs of memories that say nearly the same, as the last find-duplicates job found them",
        query=DuplicatesQuery,
        answers={200: PairsJson},
    )
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, DuplicatesQuery)
        found, following = duplicates.part_of_pairs(scope, wanted.kind, **wanted.place)
        answer: PairsJson = {
            **wanted.page_json(duplicates.open_pairs(scope, wanted.kind).count(), following),
            "duplicates": [pair_json(each, scope.instance.slug) for each in found],
        }
        return Response(answer)


class OnePair(Endpoint):
    @documented(
        "decideAboutPair",
        "Merge two memories, or keep both",
        body=PairDecision,
        instance="body",
        answers={200: PairDecidedJson, 409: ErrorJson},
    )
    def post(self, request: Request, id: str) -> Response:
        scope, wanted = from_body(request, PairDecision)
        scope.require_write()
        if wanted.action == "merge":
            merged = duplicates.merge_pair(scope, id, wanted.content)
            return Response({"event": "merged", "memory": memory_json(merged, scope.instance.slug)})
        found = duplicates.find_pair(scope, id)
        duplicates.keep_both(scope, [found.pair.id])
        return Response({"event": "kept", "memory": memory_json(found.older, scope.instance.slug)})


def pair_json(found: Likeness, instance: str) -> PairJson:
    return {
        "id": str(found.pair.id),
        "kind": found.pair.kind,
        "similarity": found.pair.cosine,
        "older": memory_json(found.older, instance),
        "newer": memory_json(found.memory, instance),
    }
