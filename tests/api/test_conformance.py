"""What the API does is what its OpenAPI description says, for input made up from that description."""

from collections.abc import Iterator

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memoryconsole.api_docs import description
from memoryconsole.wsgi import application
from tests.api.endpoints import World, populate
from tests.factories import make_instance, make_key

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

schema = schemathesis.openapi.from_dict(description())
schema.app = application
schema.config.phases.coverage.enabled = False


@pytest.fixture
def world(db: None) -> Iterator[World]:
    """The application is called without a test client, which would keep the test's connection open."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield populate(make_instance("support-bot"))
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def key(world: World) -> str:
    return make_key()


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_as_described(case: schemathesis.Case, world: World, key: str) -> None:
    point_at_what_exists(case, world)
    response = case.call(headers={"Authorization": f"Bearer {key}"})
    case.validate_response(response, checks=CHECKS)


def point_at_what_exists(case: schemathesis.Case, world: World) -> None:
    """A made-up instance or id would never get past the first 404."""
    id = next((id for room, id in ids_in(world).items() if room in case.path), None)
    known = {"slug": world.slug, "id": str(id), "attachmentId": str(world.attachment.id)}
    for name in case.path_parameters or {}:
        case.path_parameters[name] = known[name]
    named = {
        "instanceId": world.slug,
        "sourceConversationId": str(world.conversation.id),
        "sourceMessageIds": [],
        "conversationId": str(world.conversation.id),
        "memoryId": str(world.memory.id),
    }
    for place in (case.query, case.body):
        if isinstance(place, dict):
            place.update({name: value for name, value in named.items() if name in place})


def ids_in(world: World) -> dict[str, object]:
    return {
        "memories": world.memory.id,
        "recalls": world.recall,
        "procedures": world.procedure.id,
        "jobs": world.job.id,
        "conversations": world.conversation.id,
    }
