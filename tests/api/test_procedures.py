"""/api/v1/procedures"""

from typing import Any

import pytest

from instances.models import Instance
from memories.models import Procedure
from tests.api.calling import Answer, Caller, signed_in
from tests.factories import make_key, make_procedure, make_user

URL = "/api/v1/procedures"
REFUND = {"name": "Refund an order", "trigger": "wants the money back", "steps": ["Look it up", "Pay it back"]}


def create(api: Caller, **fields: Any) -> Answer:
    return api.post(URL, {"instanceId": "support-bot", **REFUND, **fields})


def test_create_and_get(api: Caller) -> None:
    answer = create(api)
    assert answer.status == 201
    procedure = answer.json["procedure"]
    assert {name: procedure[name] for name in procedure if name not in ("id", "createdAt", "updatedAt")} == {
        "instanceId": "support-bot",
        **REFUND,
        "usageCount": 0,
        "lastUsedAt": None,
    }
    assert api.get(f"{URL}/{procedure['id']}?instanceId=support-bot").json == answer.json


def test_change(api: Caller, support: Instance) -> None:
    id = make_procedure(support, "Refund", trigger="x").id
    answer = api.patch(f"{URL}/{id}", {"instanceId": "support-bot", "steps": ["Only one"], "trigger": ""})
    assert answer.status == 200
    assert (answer.json["procedure"]["steps"], answer.json["procedure"]["trigger"]) == (["Only one"], None)
    assert answer.json["procedure"]["name"] == "Refund"


def test_null_takes_the_trigger_away_and_nothing_else(api: Caller, support: Instance) -> None:
    url = f"{URL}/{create(api).json['procedure']['id']}?instanceId=support-bot"
    assert api.patch(url, {"trigger": None}).json["procedure"]["trigger"] is None
    refused = api.patch(url, {"name": None, "steps": None})
    assert refused.errors == {name: ["This may not be null."] for name in ("name", "steps")}
    assert create(api, name="Without a trigger", trigger=None).json["procedure"]["trigger"] is None


def test_used_and_most_used_first(api: Caller, support: Instance) -> None:
    first, second = make_procedure(support), make_procedure(support)
    for _ in range(2):
        answer = api.post(f"{URL}/{first.id}/used", {"instanceId": "support-bot"})
    assert answer.json["procedure"]["usageCount"] == 2
    assert answer.json["procedure"]["lastUsedAt"]
    listed = api.get(f"{URL}?instanceId=support-bot").json
    assert [each["id"] for each in listed["procedures"]] == [str(first.id), str(second.id)]
    assert (listed["total"], listed["limit"], listed["offset"]) == (2, 20, 0)
    listed = api.get(f"{URL}?instanceId=support-bot&limit=1&offset=1").json
    assert [each["id"] for each in listed["procedures"]] == [str(second.id)]


def test_what_would_match(api: Caller, support: Instance) -> None:
    create(api)
    create(api, name="Send an invoice", trigger="asks for a bill")
    found = api.get(f"{URL}?instanceId=support-bot&match=I+want+my+money+back").json
    assert [(each["name"], each["matched"], each["similarity"]) for each in found["procedures"]] == [
        ("Refund an order", ["back", "money", "want"], None)
    ]
    assert found["procedures"][0]["score"] == pytest.approx(1 / 61, abs=1e-5)
    assert api.get(f"{URL}?instanceId=support-bot&match=weather").json["total"] == 0
    assert not Procedure.objects.exclude(usage_count=0).exists()


def test_delete(api: Caller, support: Instance) -> None:
    url = f"{URL}/{make_procedure(support).id}?instanceId=support-bot"
    assert api.delete(url).json == {"deleted": 1}
    assert api.get(url).error == (404, "not_found")


def test_a_name_that_is_taken(api: Caller) -> None:
    create(api)
    answer = create(api)
    assert answer.error == (409, "taken")
    assert answer.json["errors"] == {"name": ["Another procedure of this instance has this name."]}
    other = create(api, name="Other").json["procedure"]["id"]
    renamed = api.patch(f"{URL}/{other}", {"instanceId": "support-bot", "name": REFUND["name"]})
    assert renamed.error == (409, "taken")


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"name": " "}, "name", "This may not be empty."),
        ({"name": "x" * 201}, "name", "At most 200 characters are allowed; this has 201."),
        ({"name": f"{'x' * 180} password=123456"}, "name",
         "With its credentials replaced this has 209 characters; at most 200 are allowed."),
        ({"trigger": "x" * 2001}, "trigger", "At most 2,000 characters are allowed; this has 2,001."),
        ({"trigger": "a\x00b"}, "trigger", "The NUL character is not allowed."),
        ({"steps": []}, "steps", "At least 1 is needed."),
        ({"steps": ["a", " "]}, "steps.1", "This may not be empty."),
        ({"steps": ["x"] * 51}, "steps", "At most 50 are allowed; this has 51."),
        ({"steps": "one"}, "steps", "Send a list."),
        ({"steps": [1]}, "steps.0", "Enter text."),
        ({"usageCount": 9}, "usageCount", "Unknown field."),
    ],
)  # fmt: skip
def test_bad_input(api: Caller, fields: dict[str, Any], field: str, reason: str) -> None:
    assert create(api, **fields).errors == {field: [reason]}
    assert not Procedure.objects.exists()


def test_what_is_missing_is_named(api: Caller) -> None:
    answer = api.post(URL, {"instanceId": "support-bot"})
    assert answer.errors == {"name": ["This field is required."], "steps": ["This field is required."]}


def test_a_person_in_the_console(support: Instance, sales: Instance) -> None:
    assert create(signed_in(make_user("alice", support))).status == 201
    assert create(signed_in(make_user("mallory", sales))).error == (404, "not_found")
    assert create(Caller(make_key(support, read_only=True)), name="x").error == (403, "read_only")
