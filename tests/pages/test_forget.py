"""/forget"""

from typing import Any

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import AuditEntry, Memory
from memories.recall.golden import GoldenDraft, save_golden
from tests.factories import make_conversation, make_memories, make_memory, scope_of

pytestmark = pytest.mark.django_db
URL = "/forget?instance=support-bot"


def text(response: Any) -> str:
    assert response.status_code == 200
    content: str = response.content.decode()
    return content


def confirmed(client: Client, owner: str, confirm: str, **counts: int | str) -> str:
    return text(client.post(URL, {"owner": owner, "confirm": confirm, **counts}))


def test_first_who(superadmin: Client, support: Instance) -> None:
    page = text(superadmin.get(URL))
    assert "Id of the person" in page
    assert "Forget everything" not in page


def test_then_how_much(superadmin: Client, support: Instance) -> None:
    make_memories(support, 3, owner="bob")
    make_conversation(support, "Hello", userId="bob")
    save_golden(scope_of(support), GoldenDraft(query="His tea?", user_id="bob"))
    page = text(superadmin.get(f"{URL}&owner=bob"))
    for words in ("3 memories", "1 conversation", "1 message", "1 golden query"):
        assert words in page
    for words in ("Type the id to confirm", "cannot be undone"):
        assert words in page
    assert 'name="memories" value="3"' in page
    assert Memory.objects.count() == 3


def test_then_it_is_done(superadmin: Client, support: Instance, sales: Instance) -> None:
    make_memories(support, 3, owner="bob")
    make_memory(support, "Ann met Bob")
    make_memory(sales, owner="bob")
    page = confirmed(superadmin, "bob", "bob", memories=3)
    assert "Nothing of this person is left" in page
    assert "3 memories" in page
    assert "still stands in 1 memory of others" in page
    assert Memory.objects.filter(owner="bob").get().instance_id == sales.id
    assert AuditEntry.objects.get(action="forgotten").actor == "user root"


@pytest.mark.parametrize("typed", ["", "Bob", "bo", "bob2"])
def test_a_wrong_confirmation_does_nothing(superadmin: Client, support: Instance, typed: str) -> None:
    make_memory(support, owner="bob")
    page = confirmed(superadmin, "bob", typed)
    assert "Forget everything" in page
    assert 'class="error"' in page
    assert Memory.objects.exists()


def test_what_has_changed_in_the_meantime_is_shown_first(superadmin: Client, support: Instance) -> None:
    make_memories(support, 2, owner="bob")
    page = confirmed(superadmin, "bob", "bob", memories=1)
    assert "Look at the numbers again" in page
    assert 'name="memories" value="2"' in page
    assert Memory.objects.count() == 2


def test_a_number_that_is_none_is_no_expectation(superadmin: Client, support: Instance) -> None:
    make_memory(support, owner="bob")
    assert "1 memory" in confirmed(superadmin, "bob", "bob", memories="9" * 5000, versions="x")


def test_nobody(superadmin: Client, support: Instance) -> None:
    assert "There is nothing of “nobody”" in text(superadmin.get(f"{URL}&owner=nobody"))
    make_memory(support, owner="bob")
    confirmed(superadmin, "bob", "bob")
    assert "They were forgotten" in text(superadmin.get(f"{URL}&owner=bob"))


def test_an_id_is_escaped(superadmin: Client, support: Instance) -> None:
    make_memory(support, owner="<script>x")
    assert "<script>x" not in text(superadmin.get(f"{URL}&owner=%3Cscript%3Ex"))
    assert "<script>x" not in confirmed(superadmin, "<script>x", "<script>x")
    assert not Memory.objects.exists()


def test_a_member_may_not(alice: Client, support: Instance) -> None:
    make_memory(support, owner="bob")
    assert alice.get(f"{URL}&owner=bob").status_code == 403
    assert alice.post(URL, {"owner": "bob", "confirm": "bob"}).status_code == 403
    assert Memory.objects.exists()


def test_where_it_is_found(superadmin: Client, alice: Client, support: Instance) -> None:
    make_memory(support, owner="bob")
    make_conversation(support, "Hello", userId="bob")
    link = "/forget?instance=support-bot"
    for page in ("/memory?instance=support-bot&owner=bob", "/conversations?instance=support-bot&user=bob"):
        assert f"{link}&amp;owner=bob" in text(superadmin.get(page))
        assert link not in text(alice.get(page))
    assert link in text(superadmin.get("/instances/support-bot/settings"))
    assert link not in text(alice.get("/instances/support-bot/settings"))
    assert link not in text(superadmin.get("/memory?instance=support-bot"))
