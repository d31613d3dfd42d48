"""`/api/v1/recalls`: what assistants were told, and why this memory and not that one."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from instances.models import Instance
from memories.draft import MemoryChanges
from memories.jobs import purge_recalls
from memories.models import Memory, Recall, RecallUse
from memories.store import change
from memoryconsole.ids import uuid7_at
from tests.api.calling import Caller, signed_in
from tests.factories import make_conversation, make_memory, make_user, scope_of

URL = "/api/v1/recalls"


def ask(api: Caller, query: str, **request: Any) -> str:
    answer = api.post("/api/v1/recall", {"instanceId": "support-bot", "query": query, **request})
    assert answer.status == 200, answer.json
    return str(answer.json["recallId"])


def listed(api: Caller, **query: str) -> Any:
    parameters = "".join(f"&{name}={value}" for name, value in query.items())
    answer = api.get(f"{URL}?instanceId=support-bot{parameters}")
    assert answer.status == 200, answer.json
    return answer.json


def logged(api: Caller, id: str) -> Any:
    answer = api.get(f"{URL}/{id}?instanceId=support-bot")
    assert answer.status == 200, answer.json
    return answer.json["recall"]


# The list


def test_newest_first(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Alice lives in Bern")
    first, second = ask(api, "Where is Alice?", userId="alice"), ask(api, "And Bob?")
    answer = listed(api)
    assert [one["id"] for one in answer["recalls"]] == [second, first]
    assert answer["total"] == 2
    one = answer["recalls"][1]
    assert (one["query"], one["userId"], one["searchMode"]) == ("Where is Alice?", "alice", "keyword")
    assert one["memoryIds"] == [str(memory.id)]
    assert "explanation" not in one


def test_pages(api: Caller) -> None:
    asked = [ask(api, f"Question {n}") for n in range(3)][::-1]
    page = listed(api, limit="2")
    assert [one["id"] for one in page["recalls"]] == asked[:2]
    rest = listed(api, limit="2", cursor=page["nextCursor"])
    assert [one["id"] for one in rest["recalls"]] == asked[2:]
    assert rest["nextCursor"] is None
    assert [one["id"] for one in listed(api, offset="1", limit="1")["recalls"]] == [asked[1]]


def test_of_one_user_conversation_or_memory(api: Caller, support: Instance) -> None:
    tea, coffee = make_memory(support, "Tea", role="reference"), make_memory(support, "Coffee", role="reference")
    conversation = make_conversation(support, "Hello")
    by_user = ask(api, "tea", userId="alice")
    in_conversation = ask(api, "coffee", conversationId=str(conversation.id))
    assert [one["id"] for one in listed(api, userId="alice")["recalls"]] == [by_user]
    assert [one["id"] for one in listed(api, conversationId=str(conversation.id))["recalls"]] == [in_conversation]
    assert [one["id"] for one in listed(api, memoryId=str(tea.id))["recalls"]] == [by_user]
    assert [one["id"] for one in listed(api, memoryId=str(coffee.id))["recalls"]] == [in_conversation]


@pytest.mark.parametrize("name", ["userId", "conversationId", "memoryId"])
def test_an_empty_filter_does_not_mean_any(name: str, api: Caller) -> None:
    answer = api.get(f"{URL}?instanceId=support-bot&{name}=")
    assert answer.errors == {name: ["This may not be empty. Leave the filter out to mean any."]}


@pytest.mark.parametrize("wrong", ["limit=0", "memoryId=x", "colour=red", "cursor=x"])
def test_wrong_input(api: Caller, wrong: str) -> None:
    assert api.get(f"{URL}?instanceId=support-bot&{wrong}").status == 400


# One of them


def test_everything_about_one(api: Caller, support: Instance) -> None:
    make_memory(support, "Alice lives in Bern", key="home", role="reference")
    for n in range(9):
        make_memory(support, f"Alice has {n} cats", role="reference")
    answer = api.post("/api/v1/recall", {"instanceId": "support-bot", "query": "Alice", "limit": 4, "explain": True})
    one = logged(api, answer.json["recallId"])
    assert one["context"] == answer.json["context"]
    assert one["complete"] is True
    assert one["settings"] == {
        "limit": 4,
        "threshold": 0.3,
        "tokenBudget": 2000,
        "halfLifeDays": 30,
        "mmrLambda": 0.7,
        "injectedCap": 50,
    }
    for now, then in zip(answer.json["memories"], one["memories"], strict=True):
        assert then["memory"]["id"] == then["id"] == now["id"]
        assert then["line"] in one["context"]
        for name in ("tokens", "why", "form", "rank", "score", "similarity", "explain"):
            assert then[name] == now[name], name
    assert one["dropped"] == answer.json["dropped"]
    assert one["reason"].startswith("No OpenAI or Azure key")


def test_when_something_happened(api: Caller, support: Instance) -> None:
    make_memory(support, "Alice moved to Bern", occurredAt="2026-05-12T13:05:00Z")
    one = logged(api, ask(api, "Alice"))
    assert one["memories"][0]["line"].endswith("Alice moved to Bern (2026-05-12 13:05 UTC)")


def test_what_was_said_then_although_it_has_changed(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Alice lives in Bern", key="home")
    id = ask(api, "Where does Alice live?")
    change(scope_of(support), memory.id, MemoryChanges(content="Alice lives in Basel", role="lesson"))
    change(scope_of(support), memory.id, MemoryChanges(content="Alice lives in Biel"))
    one = logged(api, id)
    assert one["context"] == "<memory-context>\n[CONTEXT] [home]: Alice lives in Bern\n</memory-context>"
    assert one["memories"][0]["changed"] is True
    assert one["memories"][0]["memory"]["content"] == "Alice lives in Biel"


def test_nothing_of_a_deleted_memory_is_left(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Zanzibar is the word", key="secret-name")
    id = ask(api, "What is the word?")
    api.delete(f"/api/v1/memories/{memory.id}?instanceId=support-bot")
    one = logged(api, id)
    assert (one["context"], one["complete"]) == ("<memory-context>\n</memory-context>", False)
    assert (one["memories"][0]["id"], one["memories"][0]["memory"], one["memories"][0]["line"]) == (
        str(memory.id),
        None,
        None,
    )
    assert "Zanzibar" not in str(one)
    stored = str(list(Recall.objects.values())) + str(list(RecallUse.objects.values()))
    assert "Zanzibar" not in stored
    assert "secret-name" not in stored


def test_an_excerpt_is_shown_again(api: Caller, support: Instance) -> None:
    paragraphs = [f"Paragraph {n} is about {'x' * 30} and " + "more " * 60 for n in range(30)]
    paragraphs[20] += " the zanzibar contract"
    make_memory(support, "\n\n".join(paragraphs), role="reference", key="long")
    answer = api.post("/api/v1/recall", {"instanceId": "support-bot", "query": "zanzibar", "tokenBudget": 1000}).json
    assert answer["memories"][0]["form"] == "excerpt"
    assert "zanzibar contract" in answer["context"]
    assert logged(api, answer["recallId"])["context"] == answer["context"]


def test_private_memories_are_not_shown_to_others(api: Caller, support: Instance) -> None:
    make_memory(support, "Alice owes 5 francs", visibility="private", owner="alice")
    id = ask(api, "francs", userId="alice")
    assert logged(signed_in(make_user("alice", support)), id)["memories"][0]["memory"]["content"]
    one = logged(signed_in(make_user("bob", support)), id)
    assert one["memories"][0]["memory"] is None
    assert "owes" not in str(one)


def test_credentials_in_a_question_are_not_kept(api: Caller) -> None:
    id = ask(api, "My password: hunter2hunter2 does not work")
    assert "hunter2" not in logged(api, id)["query"]


def test_of_another_instance(api: Caller, sales: Instance) -> None:
    row = Recall.objects.create(
        instance=sales, query="x", search_mode="keyword", explanation={}, created_at=timezone.now()
    )
    assert api.get(f"{URL}/{row.id}?instanceId=support-bot").error == (404, "not_found")
    assert api.get(f"{URL}/nonsense?instanceId=support-bot").error == (404, "not_found")


# How long it is kept


def test_it_is_kept_for_as_long_as_the_instance_says(api: Caller, support: Instance, sales: Instance) -> None:
    Instance.objects.filter(pk=support.pk).update(recall_log_days=7)
    for instance in (support, sales):
        for days in (6, 8):
            at = timezone.now() - timedelta(days=days)
            Recall.objects.create(
                instance=instance, id=uuid7_at(at), query=f"{days}", search_mode="keyword", created_at=at
            )
    purge_recalls(timestamp=0)
    assert [row.query for row in Recall.objects.filter(instance=support)] == ["6"]
    assert Recall.objects.filter(instance=sales).count() == 2


def test_zero_days_keep_nothing_but_uses_are_counted(api: Caller, support: Instance) -> None:
    make_memory(support, "Alice lives in Bern")
    ask(api, "Where does Alice live?")
    Instance.objects.update(recall_log_days=0)
    answer = api.post("/api/v1/recall", {"instanceId": "support-bot", "query": "Alice"})
    assert answer.json["recallId"] is None
    assert RecallUse.objects.count() == 2
    purge_recalls(timestamp=0)
    assert Recall.objects.count() == 0


# Why


def test_why_and_why_not(api: Caller, support: Instance) -> None:
    found = make_memory(support, "Alice lives in Bern", role="reference")
    private = make_memory(support, "Alice is shy", visibility="private", owner="alice")
    id = ask(api, "Where does Alice live?", userId="bob")
    answer = api.get(f"{URL}/{id}/why?instanceId=support-bot&memoryId={found.id}").json["why"]
    assert (answer["given"], answer["cause"], answer["rank"], answer["measured"]) == (True, "found", 1, "then")
    assert answer["explain"]["keyword"]["rank"] == 1
    assert answer["memory"]["content"] == "Alice lives in Bern"
    answer = api.get(f"{URL}/{id}/why?instanceId=support-bot&memoryId={private.id}").json["why"]
    assert (answer["given"], answer["cause"], answer["also"]) == (False, "visibility", [])


def test_why_does_not_say_what_has_expired(api: Caller, support: Instance) -> None:
    memory = make_memory(support, "Alice lives in Bern", role="reference")
    id = ask(api, "Where does Alice live?")
    Memory.objects.filter(pk=memory.pk).update(expires_at=timezone.now())
    answer = api.get(f"{URL}/{id}/why?instanceId=support-bot&memoryId={memory.id}").json["why"]
    assert (answer["given"], answer["cause"], answer["memory"]) == (True, "found", None)
    assert [other["cause"] for other in answer["also"]] == ["expired"]
    assert "Bern" not in str(answer)


def test_why_needs_a_memory_of_the_instance(api: Caller, sales: Instance) -> None:
    id = ask(api, "Alice")
    assert "memoryId" in api.get(f"{URL}/{id}/why?instanceId=support-bot").errors
    for wrong in (make_memory(sales, "Theirs").id, "nonsense"):
        answer = api.get(f"{URL}/{id}/why?instanceId=support-bot&memoryId={wrong}")
        assert answer.error == (404, "not_found")
