"""/api/schema and /api/docs"""

import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import get_resolver
from jsonschema import Draft202012Validator

from memories.filters import Filters
from memoryconsole import api_urls
from tests.api.calling import Caller, new_client
from tests.api.endpoints import CALLS, WITHOUT_INSTANCE, Call, populate
from tests.factories import make_instance

pytestmark = pytest.mark.django_db
ANY_ID = re.compile(r"\{(memory|waiting|conversation|procedure|recall|job|failed|pair)\}")


def schema() -> dict:
    return Caller().get("/api/schema").json


def test_validates_without_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=StringIO())
    assert capsys.readouterr().err == ""


def test_is_openapi_3_1() -> None:
    assert schema()["openapi"].startswith("3.1")


def test_has_every_endpoint_the_tests_have_and_no_other() -> None:
    documented = {f"{method.upper()} {path}" for path, methods in schema()["paths"].items() for method in methods}
    assert documented == {f"{call.method} {described_path(call)}" for call in CALLS + WITHOUT_INSTANCE}


def test_operations_have_a_summary_and_no_description_by_accident() -> None:
    operations = [operation for methods in schema()["paths"].values() for operation in methods.values()]
    assert all(operation["summary"] for operation in operations)
    assert not [operation["description"] for operation in operations if operation.get("description")]


def test_routes_have_no_slash_at_the_end() -> None:
    assert not [str(route.pattern) for route in api_urls.urlpatterns if str(route.pattern).endswith("/")]
    assert get_resolver().resolve("/api/v1/memories")


def test_every_operation_documents_its_errors() -> None:
    for methods in schema()["paths"].values():
        for operation in methods.values():
            assert {"400", "401", "403", "404", "429", "503"} <= operation["responses"].keys()
            if "requestBody" in operation:
                assert {"411", "413", "415"} <= operation["responses"].keys()


def test_every_body_that_is_accepted_fits_its_description() -> None:
    """So a client made from the description can send it: with `instanceId` wherever that is needed."""
    described = schema()
    world = populate(make_instance("support-bot"))
    for call in (call for call in CALLS + WITHOUT_INSTANCE if call.body):
        operation = described["paths"][described_path(call)][call.method.lower()]
        reference = operation["requestBody"]["content"]["application/json"]["schema"]
        Draft202012Validator({**reference, "components": described["components"]}).validate(call.body(world))


def described_path(call: Call) -> str:
    return ANY_ID.sub("{id}", call.path.split("?")[0]).replace("{attachment}", "{attachmentId}")


def test_shows_filters_with_their_choices() -> None:
    parameters = {each["name"]: each for each in schema()["paths"]["/api/v1/memories"]["get"]["parameters"]}
    assert parameters["instanceId"]["required"] is True
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
    assert "includeSuperseded" in parameters
    reference = parameters["category"]["schema"]["$ref"].rsplit("/", 1)[1]
    assert schema()["components"]["schemas"][reference]["enum"][0] == "general"


def test_schema_and_docs_are_public_and_other_methods_are_not_html() -> None:
    page = new_client().get("/api/docs")
    assert page.status_code == 200
    assert b"<style" not in page.content
    assert b"style=" not in page.content
    assert new_client().get("/api/docs?script=").headers["Content-Type"].startswith("application/javascript")
    assert Caller().post("/api/schema", {}).error == (405, "method_not_allowed")


def test_the_guide_has_every_endpoint_filter_and_code() -> None:
    guide = Path("docs/api.md").read_text()
    missing = [
        f"{method.upper()} {path}"
        for path, methods in schema()["paths"].items()
        for method in methods
        if f"`{method.upper()} {path}`" not in guide
    ]
    assert missing == []
    filters = [field.alias for field in Filters.model_fields.values()]
    assert [name for name in filters if f"`{name}`" not in guide] == []
    assert [code for code in codes() if f"`{code}`" not in guide] == []


def codes() -> set[str]:
    """Every code of an error, but those that only pages and tools can meet."""
    rooms = ("accounts", "conversations", "instances", "memories", "memoryconsole")
    sources = [path.read_text() for room in rooms for path in Path(room).rglob("*.py")]
    found = {code for source in sources for code in re.findall(r'\bcode ?= ?"([a-z_]+)"', source)}
    return found - {"changed_meanwhile", "conflict", "made_already", "one_instance_needed"}
