"""GET and POST /api/v1/instances, GET, PATCH and DELETE /api/v1/instances/{slug}; who may is in test_isolation"""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import AccountEvent
from instances.models import Instance, Organisation, Team
from memories.models import Memory
from tests.api.calling import Answer, Caller, signed_in
from tests.factories import make_conversation, make_instance, make_key, make_memories, make_memory, make_user

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def admin(db: None) -> Caller:
    """A program that reaches all instances."""
    return Caller(make_key())


def test_create(admin: Caller) -> None:
    answer = admin.post("/api/v1/instances", {"slug": "support-bot", "team": "Care", "organisation": "Acme"})
    assert answer.status == 201
    instance = answer.json["instance"]
    assert instance.pop("createdAt").endswith("Z")
    assert instance.pop("updatedAt").endswith("Z")
    assert [warning["code"] for warning in instance.pop("warnings")] == ["no_openai_key"]
    assert instance == {
        "slug": "support-bot",
        "name": "support-bot",
        "team": "Care",
        "organisation": "Acme",
        "memoryEnabled": True,
        "language": "english",
        "embedder": "openai",
        "openaiKeyLast4": None,
        "extractionMessages": 15,
        "extractionLimit": 20,
        "dedupeThreshold": 0.9,
        "autoApproveImportance": 1,
        "quietMinutes": 30,
        "recallLimit": 8,
        "recallThreshold": 0.3,
        "recallTokenBudget": 2000,
        "recallHalfLifeDays": 30,
        "recallMmrLambda": 0.7,
        "recallInjectedCap": 50,
        "recallLogDays": 30,
    }
    assert admin.get("/api/v1/instances/support-bot").json["instance"] == answer.json["instance"] | {
        name: admin.get("/api/v1/instances/support-bot").json["instance"][name]
        for name in ("createdAt", "updatedAt", "warnings")
    }


def test_openai_key_is_write_only(admin: Caller, support: Instance) -> None:
    answer = admin.patch("/api/v1/instances/support-bot", {"openaiKey": KEY})
    assert answer.json["instance"]["openaiKeyLast4"] == "cdef"
    assert answer.json["instance"]["warnings"] == []
    assert KEY not in str(answer.json)
    assert KEY not in str(list(AccountEvent.objects.values()))
    removed = admin.patch("/api/v1/instances/support-bot", {"openaiKey": ""}).json["instance"]
    assert removed["openaiKeyLast4"] is None
    assert removed["warnings"][0]["link"] == "/instances/support-bot/settings#openai-key"


def test_null_takes_the_openai_key_away_and_no_other_setting(admin: Caller, support: Instance) -> None:
    """Answered with 200 and ignored, a key that somebody wanted gone would go on being used."""
    admin.patch("/api/v1/instances/support-bot", {"openaiKey": KEY})
    assert change(admin, openaiKey=None).json["instance"]["openaiKeyLast4"] is None
    assert Instance.objects.get(pk=support.pk).openai_key == ""
    described = admin.get("/api/schema").json["components"]["schemas"]["InstanceChanges"]["properties"]
    others = described.keys() - {"openaiKey"}
    assert change(admin, **dict.fromkeys(others)).errors == {name: ["This may not be null."] for name in others}
    assert not [name for name in others if "anyOf" in described[name]]


def test_null_in_a_new_instance_is_what_nobody_has_said(admin: Caller) -> None:
    made = admin.post("/api/v1/instances", {"slug": "bot", "name": None, "team": None, "openaiKey": None})
    assert (made.status, made.json["instance"]["name"], made.json["instance"]["team"]) == (201, "bot", "default")


def test_list(admin: Caller, support: Instance, sales: Instance) -> None:
    answer = admin.get("/api/v1/instances")
    assert [instance["slug"] for instance in answer.json["instances"]] == ["sales-bot", "support-bot"]
    part = admin.get("/api/v1/instances?limit=1&offset=1").json
    assert (part["total"], [instance["slug"] for instance in part["instances"]]) == (2, ["support-bot"])


def test_list_has_a_constant_number_of_statements(admin: Caller, support: Instance) -> None:
    admin.get("/api/v1/instances")
    with CaptureQueriesContext(connection) as one:
        admin.get("/api/v1/instances")
    for number in range(5):
        make_instance(f"bot-no-{number}", team=f"Team {number}", organisation=f"Org {number}")
    with CaptureQueriesContext(connection) as six:
        assert len(admin.get("/api/v1/instances").json["instances"]) == 6
    assert len(one) == len(six) == 3


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "offset=-1", "instanceId=support-bot"])
def test_list_bad_input(query: str, admin: Caller) -> None:
    assert list(admin.get(f"/api/v1/instances?{query}").errors) == [query.split("=")[0]]


def test_change(admin: Caller, support: Instance) -> None:
    changes = {
        "name": "Support",
        "memoryEnabled": False,
        "language": "german",
        "embedder": "offline",
        "recallThreshold": 0.5,
        "recallLimit": 5,
    }
    answer = admin.patch("/api/v1/instances/support-bot", changes)
    assert answer.status == 200
    assert {name: answer.json["instance"][name] for name in changes} == changes
    assert answer.json["instance"]["warnings"] == []
    assert admin.get("/api/v1/instances/support-bot").json == answer.json


def test_the_description_has_the_bounds_of_every_number(admin: Caller, support: Instance) -> None:
    """What it names is taken, and what lies beyond is not."""
    fields = admin.get("/api/schema").json["components"]["schemas"]["InstanceChanges"]["properties"]
    numbers = {name: field for name, field in fields.items() if field.get("type") in NUMBERS}
    assert {"recallLimit", "dedupeThreshold", "quietMinutes"} <= numbers.keys()
    for name, number in numbers.items():
        low, high = number["minimum"], number["maximum"]
        assert [change(admin, **{name: value}).status for value in (low, high)] == [200, 200]
        assert [list(change(admin, **{name: value}).errors) for value in (low - 1, high + 1)] == [[name], [name]]


NUMBERS = ("integer", "number")


def change(admin: Caller, **changes: Any) -> Answer:
    return admin.patch("/api/v1/instances/support-bot", changes)


def test_moving_to_another_team_is_not_for_members(admin: Caller, support: Instance) -> None:
    member = Caller(make_key(support))
    assert member.patch("/api/v1/instances/support-bot", {"team": "Sales"}).error == (403, "not_allowed")
    assert member.patch("/api/v1/instances/support-bot", {"name": "Support"}).status == 200
    moved = admin.patch("/api/v1/instances/support-bot", {"team": "Sales", "organisation": "Acme"}).json["instance"]
    assert (moved["team"], moved["organisation"]) == ("Sales", "Acme")


BAD_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": "x" * 101}, "name"),
    ({"name": "a\x00b"}, "name"),
    ({"language": "klingon"}, "language"),
    ({"language": "english\x00"}, "language"),
    ({"embedder": "magic"}, "embedder"),
    ({"memoryEnabled": "maybe"}, "memoryEnabled"),
    ({"openaiKey": "short"}, "openaiKey"),
    ({"openaiKey": "sk-with space inside"}, "openaiKey"),
    ({"openaiKey": "x" * 501}, "openaiKey"),
    ({"recallLimit": 0}, "recallLimit"),
    ({"recallLimit": 51}, "recallLimit"),
    ({"recallLimit": 2**70}, "recallLimit"),
    ({"recallLimit": "many"}, "recallLimit"),
    ({"recallThreshold": 1.5}, "recallThreshold"),
    ({"recallThreshold": "nan"}, "recallThreshold"),
    ({"dedupeThreshold": "inf"}, "dedupeThreshold"),
    ({"colour": "red"}, "colour"),
    ({"openaiKeyLast4": "abcd"}, "openaiKeyLast4"),
]


@pytest.mark.parametrize(("changes", "field"), BAD_SETTINGS)
def test_bad_changes_change_nothing(changes: dict[str, Any], field: str, admin: Caller, support: Instance) -> None:
    before = admin.get("/api/v1/instances/support-bot").json
    answer = admin.patch("/api/v1/instances/support-bot", {"recallInjectedCap": 7, **changes})
    assert list(answer.errors) == [field]
    assert admin.get("/api/v1/instances/support-bot").json == before


@pytest.mark.parametrize(
    ("draft", "field"),
    [
        ({}, "slug"),
        ({"slug": ""}, "slug"),
        ({"slug": "Support Bot"}, "slug"),
        ({"slug": "-bot"}, "slug"),
        ({"slug": "bot\n"[:3] + "_"}, "slug"),
        ({"slug": "x" * 65}, "slug"),
        ({"slug": "büro"}, "slug"),
        ({"slug": "bot", "team": ""}, "team"),
        *(({"slug": "bot", **changes}, field) for changes, field in BAD_SETTINGS),
    ],
)
def test_bad_drafts_create_nothing(draft: dict[str, Any], field: str, admin: Caller) -> None:
    make_instance("taken")
    assert list(admin.post("/api/v1/instances", {"organisation": "Acme", **draft}).errors) == [field]
    assert [instance.slug for instance in Instance.objects.all()] == ["taken"]
    assert not Organisation.objects.filter(name="Acme").exists()


def test_taken_slug(admin: Caller, support: Instance) -> None:
    answer = admin.post("/api/v1/instances", {"slug": "support-bot", "name": "Mine now", "organisation": "Acme"})
    assert answer.error == (409, "taken")
    assert answer.json["errors"] == {"slug": ["An instance with this slug exists already."]}
    assert Instance.objects.get().name == "support-bot"
    assert not Organisation.objects.filter(name="Acme").exists()


@pytest.mark.parametrize(
    ("one", "other"),
    [("株式会社", "Яндекс"), ("株式会社", "default"), ("Альфа 2", "Бета 2"), ("A" * 64 + " one", "A" * 64 + " two")],
)
def test_other_names_are_other_organisations(one: str, other: str, admin: Caller) -> None:
    for slug, name in (("first", one), ("second", other)):
        answer = admin.post("/api/v1/instances", {"slug": slug, "organisation": name, "team": name})
        assert (answer.json["instance"]["organisation"], answer.json["instance"]["team"]) == (name, name)
    assert Organisation.objects.count() == Team.objects.count() == 2


@pytest.mark.parametrize("again", ["Müller & Söhne", "müller söhne", "Muller Sohne"])
def test_the_same_name_is_the_same_organisation(again: str, admin: Caller) -> None:
    for slug, name in (("first", "Müller & Söhne"), ("second", again)):
        assert admin.post("/api/v1/instances", {"slug": slug, "organisation": name}).status == 201
    assert Organisation.objects.count() == 1


def test_slug_cannot_be_changed(admin: Caller, support: Instance) -> None:
    assert admin.patch("/api/v1/instances/support-bot", {"slug": "other"}).errors == {"slug": ["Unknown field."]}


def test_delete_takes_everything_with_it(support: Instance, sales: Instance) -> None:
    make_memories(support, 3)
    make_conversation(support, "Hello")
    make_memory(sales)
    superadmin = signed_in(make_user("ada", superadmin=True))
    answer = superadmin.delete("/api/v1/instances/support-bot?confirm=support-bot")
    assert (answer.status, answer.json) == (200, {"deleted": 1, "memories": 3, "conversations": 1})
    assert superadmin.get("/api/v1/instances/support-bot").error == (404, "not_found")
    assert [memory.instance for memory in Memory.objects.all()] == [sales]


def test_delete_confirms_in_the_body_too(support: Instance) -> None:
    superadmin = signed_in(make_user("ada", superadmin=True))
    assert superadmin.delete("/api/v1/instances/support-bot", {"confirm": "support-bot"}).status == 200


def test_delete_needs_the_slug_again(support: Instance) -> None:
    superadmin = signed_in(make_user("ada", superadmin=True))
    for query in ("", "?confirm=", "?confirm=yes", "?confirm=SUPPORT-BOT"):
        assert list(superadmin.delete(f"/api/v1/instances/support-bot{query}").errors) == ["confirm"]
    assert Instance.objects.filter(slug="support-bot").exists()


def test_delete_is_not_for_keys(admin: Caller, support: Instance) -> None:
    assert admin.delete("/api/v1/instances/support-bot?confirm=support-bot").error == (403, "not_allowed")
    assert Instance.objects.filter(slug="support-bot").exists()
