"""/procedures, /procedures/new, /procedures/<id> and /procedures/<id>/delete"""

import re
from typing import Any

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import Procedure
from tests.factories import make_procedure, scope_of

pytestmark = pytest.mark.django_db
NEW = "/procedures/new?instance=support-bot"
HTMX = {"HX-Request": "true"}


def html(response: Any) -> str:
    text: str = response.content.decode()
    return text


def steps_in(response: Any) -> list[str]:
    return [step.strip() for step in re.findall(r'<textarea name="steps"[^>]*>([^<]*)', html(response))]


def test_the_list(alice: Client, support: Instance) -> None:
    make_procedure(support, "Refund <order>", trigger="wants money back")
    page = html(alice.get("/procedures?instance=support-bot"))
    assert "Refund &lt;order&gt;" in page
    assert "wants money back" in page
    assert "never" in page
    assert 'href="/procedures?instance=support-bot" aria-current="page"' in page


def test_nothing_yet(alice: Client) -> None:
    page = html(alice.get("/procedures?instance=support-bot"))
    assert "Support bot has learnt no procedures yet" in page
    assert "What would match?" not in page


def test_many(alice: Client, support: Instance) -> None:
    for n in range(52):
        make_procedure(support, f"Way {n:02}")
    assert "Way 51" in html(alice.get("/procedures?instance=support-bot"))
    second = html(alice.get("/procedures?instance=support-bot&page=2"))
    assert "Way 00" in second
    assert "Way 51" not in second
    assert html(alice.get("/procedures?instance=support-bot&page=x")).count("Way 51")


def test_what_would_match(alice: Client, support: Instance) -> None:
    make_procedure(support, "Refund an order", trigger="wants money back")
    url = "/procedures?instance=support-bot&match="
    page = html(alice.get(f"{url}give+me+my+money+back"))
    assert re.search(r"Refund an order</b></a>\s*<small>by the words back, money", page)
    assert "No procedure matches." in html(alice.get(f"{url}weather%00"))
    fragment = html(alice.get(f"{url}refund", headers=HTMX | {"HX-Target": "tested"}))
    assert "Refund an order" in fragment
    assert "<html" not in fragment
    assert Procedure.objects.get().usage_count == 0


@pytest.mark.parametrize(("before", "is_replaced"), [("", False), ("&match=ref", True)])
def test_typing_does_not_flood_the_history(alice: Client, support: Instance, before: str, is_replaced: bool) -> None:
    make_procedure(support, "Refund an order")
    current = f"http://testserver/procedures?instance=support-bot{before}"
    headers = {"HX-Request": "true", "HX-Target": "tested", "HX-Current-URL": current, "X-Typing": "true"}
    response = alice.get("/procedures?instance=support-bot&match=refund", headers=headers)
    replaced = "/procedures?instance=support-bot&match=refund" if is_replaced else None
    assert response.headers.get("HX-Replace-Url") == replaced


def test_write_one(alice: Client, support: Instance) -> None:
    assert steps_in(alice.get(NEW)) == [""]
    sent = {"name": "Refund", "trigger": "money back", "steps": ["Look", " ", "Pay"], "do": "save"}
    response = alice.post(NEW, sent, follow=True)
    assert "Saved “Refund”. It is offered whenever its trigger fits." in html(response)
    procedure = Procedure.objects.get(instance=support)
    assert (procedure.name, procedure.trigger, procedure.steps) == ("Refund", "money back", ["Look", "Pay"])
    without = alice.post(NEW, {"name": "Greet", "steps": ["Wave"], "do": "save"}, follow=True)
    assert "Saved “Greet”. It is offered whenever its name fits." in html(without)


@pytest.mark.parametrize(
    ("action", "steps"),
    [
        ("add", ["a", "b", "c", ""]),
        ("up-2", ["b", "a", "c"]),
        ("down-2", ["a", "c", "b"]),
        ("up-1", ["a", "b", "c"]),
        ("down-3", ["a", "b", "c"]),
        ("remove-2", ["a", "c"]),
    ],
)
def test_steps_are_arranged_without_scripts(alice: Client, support: Instance, action: str, steps: list[str]) -> None:
    sent = {"name": "Refund", "trigger": "x", "steps": ["a", "b", "c"], "do": action}
    page = alice.post(NEW, sent)
    assert steps_in(page) == steps
    assert 'value="Refund"' in html(page)
    assert not Procedure.objects.exists()
    fragment = alice.post(NEW, sent, headers=HTMX)
    assert steps_in(fragment) == steps
    assert "<html" not in html(fragment)


def test_the_last_step_leaves_an_empty_one(alice: Client) -> None:
    assert steps_in(alice.post(NEW, {"steps": ["a"], "do": "remove-1"})) == [""]
    assert steps_in(alice.post(NEW, {"steps": ["a", "b"], "do": "nonsense-9"})) == ["a", "b"]
    assert steps_in(alice.post(NEW, {"steps": ["a", "b"], "do": f"up-{'9' * 5000}"})) == ["a", "b"]
    assert len(steps_in(alice.post(NEW, {"steps": ["a"] * 50, "do": "add"}))) == 50


def test_bad_input(alice: Client, support: Instance) -> None:
    make_procedure(support, "Refund")
    for sent, said in (
        ({"name": "", "steps": ["a"]}, "This may not be empty."),
        ({"name": "New", "steps": [""]}, "Write at least one step."),
        ({"name": "New", "steps": ["a", "x" * 2001]}, "At most 2,000 characters are allowed"),
        ({"name": "New", "steps": ["a"] * 51}, "At most 50 are allowed"),
        ({"name": "Refund", "steps": ["a"]}, "Another procedure of this instance has this name."),
    ):
        assert said in html(alice.post(NEW, {"do": "save", **sent})), said
    assert Procedure.objects.count() == 1


def test_change_one(alice: Client, support: Instance) -> None:
    procedure = make_procedure(support, "Refund", trigger="x", steps=["Look", "Pay"])
    url = f"/procedures/{procedure.id}?instance=support-bot"
    assert steps_in(alice.get(url)) == ["Look", "Pay"]
    seen = procedure.updated_at.isoformat()
    assert alice.post(url, {"name": "Refunds", "trigger": "", "steps": ["Pay"], "seen": seen}).status_code == 302
    changed = Procedure.objects.get(instance=support)
    assert (changed.name, changed.trigger, changed.steps) == ("Refunds", "", ["Pay"])
    late = html(alice.post(url, {"name": "Mine", "steps": ["Mine"], "seen": seen}))
    assert "Somebody changed this procedure while you were writing." in late
    assert "It now says: Refunds" in late
    assert Procedure.objects.get(instance=support).name == "Refunds"


def test_delete_one(alice: Client, support: Instance) -> None:
    procedure = make_procedure(support, "Refund")
    url = f"/procedures/{procedure.id}/delete?instance=support-bot"
    assert "Delete “Refund” for good?" in html(alice.get(url))
    assert "<html" not in html(alice.get(url, headers=HTMX))
    assert "Deleted “Refund”." in html(alice.post(url, follow=True))
    assert not Procedure.objects.exists()


def test_strangers(mallory: Client, support: Instance) -> None:
    procedure = make_procedure(support, "Refund")
    for url in (f"/procedures/{procedure.id}", f"/procedures/{procedure.id}/delete"):
        for instance in ("support-bot", "sales-bot"):
            assert mallory.post(f"{url}?instance={instance}", {"name": "Hacked", "steps": ["x"]}).status_code == 404
    assert scope_of(support).instance == procedure.instance
    assert Procedure.objects.get().name == "Refund"
