"""`/api/v1/tags`: the tags an instance uses."""

from dataclasses import asdict
from typing import Annotated

from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from memories.api.opening import from_query
from memories.draft import Tag
from memories.tags import known_tags
from memoryconsole.endpoints import Endpoint
from memoryconsole.inputs import Input, Number
from memoryconsole.schema import documented


class TagsQuery(Input):
    prefix: Tag = ""
    limit: Annotated[Number, Field(ge=1, le=1000)] = 20


class TagJson(TypedDict):
    tag: str
    memories: int


class TagsJson(TypedDict):
    tags: list[TagJson]


class Tags(Endpoint):
    @documented(
        "listTags", "The tags of the latest memories, most used first", query=TagsQuery, answers={200: TagsJson}
    )
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, TagsQuery)
        return Response({"tags": [asdict(tag) for tag in known_tags(scope, wanted.prefix, limit=wanted.limit)]})
