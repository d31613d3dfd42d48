"""/recall/log and /recall/<id>: what was recalled, and why."""

import re

import pytest
from django.test import Client

from instances.models import Instance
from memories.draft import MemoryChanges
from memories.recall.recalling import Recalled, RecallRequest, recall
from memories.store import change
from memories.views import recall_log
from tests.factories import make_conversation, make_memory, scope_of

pytestmark = pytest.mark.django_db


def recalled(instance: Instance, query: str, **fields: object) -> Recalled:
    return recall(scope_of(instance), RecallRequest.model_validate({"query": query, **fields}))


def log(client: Client, **parameters: object) -> str:
    response = client.get("/recall/log", {"instance": "support-bot", **parameters})
    assert response.status_code == 200
    return response.content.decode()


def queries(page: str) -> list[str]:
    return re.findall(r'<td class="wide"><a [^>]*>(.*?)</a>', page)


def test_newest_first_and_only_of_this_instance(alice, support, sales):
    for n in range(3):
        recalled(support, f"Question {n}")
    recalled(sales, "A secret question")
    assert queries(log(alice)) == ["Question 2", "Question 1", "Question 0"]


def test_it_is_paged(alice, support, monkeypatch):
    monkeypatch.setattr(recall_log, "SIZE", 2)
    for n in range(5):
        recalled(support, f"Question {n}")
    page, seen = log(alice), []
    while True:
        seen += queries(page)
        older = re.search(r'href="(\?[^"]*after=[^"]*)" rel="next"', page)
        if not older:
            break
        page = alice.get("/recall/log" + older[1].replace("&amp;", "&")).content.decode()
    assert seen == [f"Question {n}" for n in (4, 3, 2, 1, 0)]
    assert "Newest" in page
    assert queries(log(alice, after="nonsense"))[0] == "Question 4"


def test_filters(alice, support):
    talk = make_conversation(support, "Hello", title="A talk about shoes")
    memory = make_memory(support, "Shoes are sold out", role="reference")
    recalled(support, "Which shoes?", conversation_id=talk.id)
    recalled(support, "Whose shoes?", user_id="bob")
    make_memory(support, "Parking is free", role="reference")
    recalled(support, "parking")
    assert queries(log(alice, conversationId=talk.id)) == ["Which shoes?"]
    assert "A talk about shoes" in log(alice)
    assert queries(log(alice, userId="bob")) == ["Whose shoes?"]
    assert queries(log(alice, memoryId=memory.id)) == ["Whose shoes?", "Which shoes?"]
    assert "No recall matches" in log(alice, userId="nobody")
    assert "This is the whole log." in log(alice, conversationId="nonsense")


def test_a_conversation_links_to_its_recalls(alice, support):
    talk = make_conversation(support, "Hello")
    page = alice.get(f"/conversations/{talk.id}?instance=support-bot").content.decode()
    assert f"/recall/log?instance=support-bot&amp;conversationId={talk.id}" in page


def test_an_empty_log_says_what_it_is_for(alice, support):
    assert "Nothing has been recalled yet" in log(alice)
    Instance.objects.filter(pk=support.pk).update(recall_log_days=0)
    assert "keeps no log" in log(alice)


def test_scripts_get_the_list(alice, support):
    response = alice.get("/recall/log?instance=support-bot", headers={"hx-request": "true"})
    assert b"<html" not in response.content


def test_one_recall_as_it_was(alice, support):
    memory = make_memory(support, "Refunds take five days", role="reference", key="refunds")
    make_memory(support, "Refunds " + "need patience " * 60, role="reference")
    done = recalled(support, "How long do refunds take?", user_id="bob", token_budget=100)
    change(scope_of(support), memory.id, MemoryChanges(content="Refunds take three days"))
    page = alice.get(f"/recall/{done.id}?instance=support-bot").content.decode()
    assert "[REFERENCE] [refunds]: Refunds take five days" in page
    assert "changed since" in page
    assert "No room left" in page
    assert "of 100 tokens" in page
    assert "Try it again" in page
    assert "userId=bob" in page


def test_what_was_deleted_is_gone_from_it(alice, support):
    memory = make_memory(support, "Refunds take five days", role="reference")
    done = recalled(support, "How long do refunds take?")
    memory.delete()
    page = alice.get(f"/recall/{done.id}?instance=support-bot").content.decode()
    assert "five days" not in page
    assert "It has been deleted since, or is private." in page
    assert "Not everything that was in it can be shown" in page


def test_why_not_of_a_real_recall(alice, support):
    make_memory(support, "Refunds take five days", role="reference")
    done = recalled(support, "How long do refunds take?")
    later = make_memory(support, "Refunds are instant", role="reference")
    page = alice.get(f"/recall/{done.id}?instance=support-bot&memory={later.id}").content.decode()
    assert "Remembered later" in page
    page = alice.get(f"/recall/{done.id}?instance=support-bot&ask=instant").content.decode()
    assert f"/recall/{done.id}?instance=support-bot&amp;memory={later.id}#why" in page


def test_a_private_memory_in_it_is_not_shown_to_others(alice, superadmin, support):
    make_memory(support, "Bob is allergic to nuts", visibility="private", owner="bob", role="reference")
    done = recalled(support, "What is Bob allergic to?", user_id="bob")
    assert b"to nuts" in superadmin.get(f"/recall/{done.id}?instance=support-bot").content
    assert b"to nuts" not in alice.get(f"/recall/{done.id}?instance=support-bot").content


def test_a_recall_of_another_instance_is_not_there(alice, mallory, support, sales):
    done = recalled(support, "A secret question")
    assert mallory.get(f"/recall/{done.id}?instance=sales-bot").status_code == 404
    assert mallory.get(f"/recall/{done.id}?instance=support-bot").status_code == 404
