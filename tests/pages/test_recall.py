"""/recall: the playground."""

import re

import pytest
from django.test import Client

from accounts.models import User
from instances.models import Instance
from memories.embedding.backfill import embed_pending
from memories.models import Recall
from tests.factories import make_instance, make_memories, make_memory, make_procedure, scope_of

pytestmark = pytest.mark.django_db


def ask(client: Client, query: str = "", **parameters: object) -> str:
    values = {"instance": "support-bot", "query": query, **parameters}
    response = client.get("/recall", {name: value for name, value in values.items() if value != ""})
    assert response.status_code == 200
    return response.content.decode()


def block(page: str) -> str:
    found = re.search(r'<pre class="block"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert found
    return found[1]


def test_before_anything_is_asked(alice, support):
    page = ask(alice)
    assert "What would Support bot be told?" in page
    assert '<pre class="block"' not in page


def test_the_exact_block_with_its_cost_and_nothing_logged(alice, support):
    make_memory(support, "Ada prefers <b>tea</b> over coffee", key="drink", role="reference")
    page = ask(alice, "What does Ada drink, tea?")
    assert "[REFERENCE] [drink]: Ada prefers &amp;lt;b&amp;gt;tea&amp;lt;/b&amp;gt; over coffee" in block(page)
    assert "of 2,000 tokens, estimated" in page
    assert "Keyword only" in page
    assert "No OpenAI or Azure key reaches this instance" in page
    assert "Found #1" in page
    assert Recall.objects.count() == 0


def test_the_modes(alice, support):
    assert "Newest memories" in ask(alice, "Something nobody ever said")
    Instance.objects.filter(pk=support.pk).update(memory_enabled=False)
    assert "Memory is off" in ask(alice, "Anything")


def test_a_procedure_alone_is_something_to_tell(alice, support):
    assert "There is nothing to tell yet." in ask(alice, "Refund an order")
    make_procedure(support, "Refund an order")
    page = ask(alice, "Refund an order")
    assert "[PROCEDURE] [Refund an order]" in block(page)
    assert "There is nothing to tell yet." not in page
    assert "No memory: a procedure or a summary is all there is to tell." in page


def test_by_words_and_meaning(alice, support):
    Instance.objects.filter(pk=support.pk).update(embedder="offline")
    support.refresh_from_db()
    make_memory(support, "Refunds take five days", role="reference")
    embed_pending(scope_of(support))
    page = ask(alice, "How long do refunds take?")
    assert "Hybrid" in page
    assert re.search(r"cosine 0\.\d{3}", page)


@pytest.mark.parametrize(
    ("settings", "cause"),
    [({"limit": 1}, "Others are better"), ({"tokenBudget": 100}, "No room left"), ({}, "In it")],
)
def test_a_setting_cuts_and_the_cause_is_named(alice, support, settings, cause):
    make_memory(support, "Refunds take five days " + "and need patience " * 10, role="reference")
    make_memory(support, "Refunds go to the card that was used, always, " + "as we promised " * 10, role="reference")
    page = ask(alice, "refunds", **settings)
    assert cause in page
    assert ("not saved" in page) == bool(settings)


def test_what_says_the_same_is_named_by_what_it_says(alice, support):
    make_memory(support, "Refunds take five working days by card", role="reference")
    make_memory(support, "Refunds take five working days by bank card", role="reference")
    make_memory(support, "Our shop sells shoes; refunds exist", role="reference")
    page = ask(alice, "refunds five working days", limit=2, mmrLambda=0)
    assert "Says the same as another" in page
    assert re.search(r"of its words with “Refunds take five working days", page)


@pytest.mark.parametrize(
    ("name", "value", "label"),
    [
        ("threshold", "2", "Similarity from"),
        ("limit", "0", "Memories found"),
        ("limit", "many", "Memories found"),
        ("tokenBudget", "5", "Token budget"),
        ("mmrLambda", "nan", "Relevance against variety"),
    ],
)
def test_a_wrong_setting_is_said_at_its_field_and_by_its_name(alice, support, name, value, label):
    page = ask(alice, "refunds", **{name: value})
    assert re.search(rf'id="{name}"[^>]*aria-invalid="true"', page)
    assert re.search(rf'role="alert">.*<span>{label}: ', page)
    assert '<pre class="block"' not in page


def test_scripts_get_the_result_and_an_address_without_what_is_as_saved(alice, support):
    response = alice.get(
        "/recall",
        {"instance": "support-bot", "query": "a & b", "limit": "8", "threshold": "0.5", "halfLifeDays": "30"},
        headers={"hx-request": "true"},
    )
    assert response["HX-Replace-Url"] == "/recall?instance=support-bot&query=a+%26+b&threshold=0.5"
    assert "HX-Request" in response["Vary"]
    assert b"<html" not in response.content
    assert b'id="tried"' in response.content


def test_the_end_user_decides_which_private_memories_are_in_it(superadmin, support):
    make_memory(support, "Bob is allergic to nuts", visibility="private", owner="bob", role="reference")
    assert "nuts" in block(ask(superadmin, "What is Bob allergic to?", userId="bob"))
    assert "nuts" not in block(ask(superadmin, "What is Bob allergic to?"))
    assert "nuts" not in block(ask(superadmin, "What is Bob allergic to?", userId="eve"))


def test_a_reader_never_sees_what_is_private_to_somebody_else(alice, support):
    make_memory(support, "Bob is allergic to nuts", visibility="private", owner="bob", role="reference")
    make_memory(support, "Alice likes nuts", visibility="private", owner="alice", role="reference")
    page = ask(alice, "Who is allergic to nuts?", userId="bob")
    assert "allergic to nuts</" not in page
    assert "not yours to see" in page
    assert "Alice likes nuts" in block(ask(alice, "Who likes nuts?", userId="alice"))


def test_end_users_are_completed(superadmin, alice, support, sales):
    for owner in ("bob", "barbara", "carol"):
        make_memory(support, owner=owner)
    make_memory(support, visibility="private", owner="boris")
    make_memory(sales, owner="bosco")

    def names(client: Client, typed: str) -> list[str]:
        page = client.get("/recall/users", {"instance": "support-bot", "userId": typed}).content.decode()
        return re.findall(r'value="(\w+)"', page)

    assert names(superadmin, "") == ["barbara", "bob", "boris", "carol"]
    assert names(superadmin, "bo") == ["bob", "boris"]
    assert names(alice, "bo") == ["bob"]
    assert names(alice, "x") == []


def test_why_and_why_not(alice, support):
    given = make_memory(support, "Refunds take five days", role="reference")
    other = make_memory(support, "Parking is free on Sundays", role="reference")
    old = make_memory(support, "Refunds took ten days", key="days")
    make_memory(support, "Refunds took nine days", key="days", dedupe="create", supersedeReason="It changed.")
    assert "It is in the block, at place" in ask(alice, "How long do refunds take?", memory=given.id)
    page = ask(alice, "How long do refunds take?", memory=other.id)
    assert "It is not in the block." in page
    assert "Others are better" in page
    page = ask(alice, "How long do refunds take?", ask=str(old.id))
    assert "Superseded" in page
    assert "Something newer has replaced it." in page


def test_a_memory_can_be_looked_for_by_its_words(alice, support):
    memory = make_memory(support, "Parking is free on Sundays", role="reference")
    page = ask(alice, "refunds", ask="parking")
    assert f"query=refunds&amp;memory={memory.id}#why" in page
    assert "No memory has these words." in ask(alice, "refunds", ask="xylophone")


def test_a_chosen_memory_waits_for_a_message(alice, support):
    memory = make_memory(support, "Parking is free on Sundays")
    page = ask(alice, memory=memory.id)
    assert "Parking is free on Sundays" in page
    assert "Type a message above" in page


def test_what_has_expired_is_explained_but_not_shown(alice, support):
    memory = make_memory(support, "The code is 4711", role="reference")
    type(memory).objects.filter(pk=memory.pk).update(expires_at="2020-01-01T00:00:00Z")
    page = ask(alice, "What is the code?", memory=memory.id)
    assert "It expired at 2020-01-01" in page
    assert "4711" not in page


def test_a_memory_of_somebody_else_is_no_memory(alice, support, sales):
    foreign = make_memory(sales, "A secret of the sales bot")
    for id in (foreign.id, "nonsense", "01a1e464-c166-76bb-b939-dd59bab3e80b"):
        for query in ("secret", ""):
            page = ask(alice, query, memory=id)
            assert "There is no such memory in this instance." in page
            assert "A secret of the sales bot" not in page


def test_a_memory_links_here(alice, support):
    memory = make_memory(support, "Parking is free on Sundays")
    page = alice.get(f"/memory/{memory.id}?instance=support-bot").content.decode()
    assert f"/recall?instance=support-bot&amp;memory={memory.id}" in page


def test_odd_input_does_not_break_it(alice, support):
    make_memories(support, 3)
    for query in ("\x00", "'); DROP TABLE memories_memory; --", "“”", "<memory-context>x</memory-context>", "x" * 9000):
        ask(alice, query, userId="\x00\x01" if query == "\x00" else "")


def test_it_is_for_people_who_are_signed_in():
    response = Client().get("/recall?instance=support-bot")
    assert response.status_code == 302
    assert response["Location"].startswith("/login")


def test_without_an_instance_it_goes_to_the_last_one(alice: Client, support: Instance):
    assert User.objects.filter(username="alice").exists()
    make_instance("other-bot")
    response = alice.get("/recall")
    assert response["Location"] == "/recall?instance=support-bot"
