"""`/api/v1/instances`: the instances, their settings and warnings."""

from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import TypedDict

from accounts.access import instances_of, open_instance
from accounts.api_authentication import actor_of
from instances.models import Instance, Team
from instances.presenting import InstanceJson, instance_json
from instances.store import InstanceChanges, InstanceDraft, change_instance, create_instance, delete_instance
from memoryconsole.endpoints import Endpoint, Nothing, Slice, body, query, query_or_body
from memoryconsole.errors import Invalid
from memoryconsole.inputs import Input, Text, read
from memoryconsole.presenting import SliceJson
from memoryconsole.schema import ErrorJson, documented


class InstanceDeletion(Input):
    confirm: Text = ""


class InstancesJson(SliceJson):
    instances: list[InstanceJson]


class OneInstanceJson(TypedDict):
    instance: InstanceJson


class InstanceReceiptJson(TypedDict):
    deleted: int
    memories: int
    conversations: int


class Instances(Endpoint):
    @documented(
        "listInstances",
        "List the instances you may open, by slug",
        query=Slice,
        instance="path",
        answers={200: InstancesJson},
    )
    def get(self, request: Request) -> Response:
        wanted = read(Slice, query(request))
        rows = instances_of(actor_of(request)).order_by("slug")
        page = rows.select_related("team__organisation")[wanted.places]
        answer: InstancesJson = {
            **wanted.slice_json(rows.count()),
            "instances": [instance_json(instance) for instance in page],
        }
        return Response(answer)

    @documented(
        "createInstance",
        "Create an instance; its team and organisation are made if they are missing",
        body=InstanceDraft,
        instance="path",
        answers={201: OneInstanceJson, 409: ErrorJson},
    )
    def post(self, request: Request) -> Response:
        instance = create_instance(actor_of(request), read(InstanceDraft, body(request)))
        answer: OneInstanceJson = {"instance": instance_json(instance)}
        return Response(answer, status=201)


class OneInstance(Endpoint):
    @documented("getInstance", "Get an instance", instance="path", answers={200: OneInstanceJson})
    def get(self, request: Request, slug: str) -> Response:
        scope = open_instance(actor_of(request), slug)
        read(Nothing, query(request))
        answer: OneInstanceJson = {"instance": instance_json(with_team(scope.instance))}
        return Response(answer)

    @documented(
        "changeInstance",
        "Change an instance's settings",
        body=InstanceChanges,
        instance="path",
        answers={200: OneInstanceJson},
    )
    def patch(self, request: Request, slug: str) -> Response:
        scope = open_instance(actor_of(request), slug)
        changes = read(InstanceChanges, body(request))
        with_team(scope.instance)
        answer: OneInstanceJson = {"instance": instance_json(change_instance(scope, changes))}
        return Response(answer)

    @documented(
        "deleteInstance",
        "Delete an instance with everything in it; a superadmin confirms with its slug",
        query=InstanceDeletion,
        instance="path",
        answers={200: InstanceReceiptJson},
    )
    def delete(self, request: Request, slug: str) -> Response:
        scope = open_instance(actor_of(request), slug)
        if read(InstanceDeletion, query_or_body(request)).confirm != slug:
            raise Invalid({"confirm": [f"Send confirm={slug} to delete this instance with everything in it."]})
        counts = delete_instance(scope)
        answer: InstanceReceiptJson = {
            "deleted": 1,
            "memories": counts["memories"],
            "conversations": counts["conversations"],
        }
        return Response(answer)


def with_team(instance: Instance) -> Instance:
    """Load the team and its organisation with one query."""
    instance.team = Team.objects.select_related("organisation").get(pk=instance.team_id)
    return instance
