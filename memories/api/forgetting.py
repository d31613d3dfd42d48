"""`/api/v1/forget`: everything of one owner, removed."""

from dataclasses import asdict
from typing import Annotated

from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from memories.api.opening import from_body, from_query
from memories.forgetting import Owner, forget, preview
from memoryconsole.endpoints import Endpoint
from memoryconsole.inputs import Input, Number
from memoryconsole.schema import ErrorJson, documented

Count = Annotated[Number, Field(ge=0)]


class Expected(Input):
    """The numbers you have seen in the preview; leave out those that do not matter."""

    memories: Count | None = None
    versions: Count | None = None
    chunks: Count | None = None
    embeddings: Count | None = None
    attachments: Count | None = None
    conversations: Count | None = None
    messages: Count | None = None
    recalls: Count | None = None
    golden: Count | None = None
    jobs: Count | None = None


class Forgetting(Owner):
    """With `expected`, nothing is forgotten if one of the numbers has changed."""

    expected: Expected = Expected()


class CountsJson(TypedDict):
    """How much there is of somebody, by kind; `golden` are golden queries asked on their behalf."""

    memories: int
    versions: int
    chunks: int
    embeddings: int
    attachments: int
    conversations: int
    messages: int
    recalls: int
    golden: int
    jobs: int


class FoundJson(TypedDict):
    found: CountsJson


class ForgottenJson(TypedDict):
    """`left` is the number of rows the owner still has; `mentioned` is how many other rows name the owner, by kind."""

    forgotten: CountsJson
    left: int
    mentioned: dict[str, int]


class StaleJson(ErrorJson):
    found: CountsJson


class Forget(Endpoint):
    @documented(
        "previewForgetting",
        "What forgetting an owner would remove",
        query=Owner,
        answers={200: FoundJson},
    )
    def get(self, request: Request) -> Response:
        scope, wanted = from_query(request, Owner)
        counts = preview(scope, wanted.owner)
        return Response({"found": asdict(counts)})

    @documented(
        "forget",
        "Remove everything of one owner for good, all or nothing",
        body=Forgetting,
        instance="body",
        answers={200: ForgottenJson, 409: StaleJson},
    )
    def post(self, request: Request) -> Response:
        scope, wanted = from_body(request, Forgetting)
        done = forget(scope, wanted.owner, expected=wanted.expected.model_dump(exclude_none=True))
        return Response({"forgotten": asdict(done.counts), "left": done.left, "mentioned": done.mentioned})
