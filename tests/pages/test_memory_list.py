"""GET /memory"""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from instances.models import Instance
from memories.models import Memory
from tests.factories import make_conversation, make_memories, make_memory, make_user

pytestmark = pytest.mark.django_db


def text(client: Client, url: str, **extra: object) -> str:
    response = client.get(url, **extra)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def shown(html: str) -> list[str]:
    """The contents of the rows, in order."""
    return re.findall(r'<a class="memory-text" href="[^"]*">([^<]*)</a>', html)


def chips(html: str) -> dict[str, int]:
    return {title: int(n) for title, n in re.findall(r'">(\w+) <span class="n">(\d+)</span>', html)}


def test_a_row_shows_what_a_memory_is(alice: Client, support: Instance) -> None:
    conversation = make_conversation(support, "Hello", title="Renewal call")
    memory = make_memory(
        support,
        "Alice prefers tables.",
        category="preference",
        importance=8,
        tags=["style"],
        key="tables",
        sourceConversationId=str(conversation.id),
    )
    html = text(alice, "/memory?instance=support-bot")
    assert shown(html) == ["Alice prefers tables."]
    assert '<span class="badge preference">Preference</span>' in html
    assert 'title="Importance 8 of 10"' in html
    assert f'<a href="/conversations/{conversation.id}?instance=support-bot" title="Renewal call">' in html
    assert f"/memory/{memory.id}/edit" in html
    assert f"/memory/{memory.id}/delete" in html
    assert re.search(r'<time datetime="[^"]+" title="[^"]+ UTC">just now</time>', html)


def test_newest_first_and_other_orders(alice: Client, support: Instance) -> None:
    for content, importance in (("first", 9), ("second", 2), ("third", 5)):
        make_memory(support, content, importance=importance)
    assert shown(text(alice, "/memory?instance=support-bot")) == ["third", "second", "first"]
    assert shown(text(alice, "/memory?instance=support-bot&sort=oldest")) == ["first", "second", "third"]
    assert shown(text(alice, "/memory?instance=support-bot&sort=importance")) == ["first", "third", "second"]


def test_chips_count_what_the_other_filters_leave(alice: Client, support: Instance) -> None:
    make_memories(support, 3, category="fact", tags=["vip"])
    make_memories(support, 2, category="fact")
    make_memories(support, 1, category="event", tags=["vip"])
    assert chips(text(alice, "/memory?instance=support-bot")) == {
        "All": 6, "General": 0, "Preference": 0, "Fact": 5, "Event": 1, "Relationship": 0, "Decision": 0,
    }  # fmt: skip
    html = text(alice, "/memory?instance=support-bot&category=event&tag=vip")
    assert chips(html)["Fact"] == 3
    assert chips(html)["All"] == 4
    assert len(shown(html)) == 1
    assert "Tag: vip" in html


FILTERS = [
    ("category=fact", {"category": "fact"}),
    ("role=lesson", {"role": "lesson"}),
    ("role=warning", {"role": "lesson"}),
    ("tag=vip", {"tags": ["vip", "other"]}),
    ("source=crm", {"source": "crm"}),
    ("owner=bob", {"owner": "bob"}),
    ("visibility=team", {"visibility": "team"}),
    ("pinned=true", {"pinned": True}),
    ("minImportance=9", {"importance": 9}),
    ("occurredAfter=2026-05-01T00:00", {"occurredAt": "2026-05-02T10:00:00Z"}),
]


@pytest.mark.parametrize(("query", "fields"), FILTERS, ids=[query for query, _ in FILTERS])
def test_every_filter_narrows(alice: Client, support: Instance, query: str, fields: dict[str, object]) -> None:
    make_memory(support, "the one", **fields)
    make_memories(support, 2)
    html = text(alice, f"/memory?instance=support-bot&{query}")
    assert shown(html) == ["the one"]


def test_what_a_form_leaves_empty_means_any(alice: Client, support: Instance) -> None:
    """Without scripts it sends every field."""
    make_memory(support, "Ann likes tea")
    empty = "&".join(
        f"{name}=" for name in ("category", "role", "tag", "owner", "minImportance", "createdAfter", "sort")
    )
    assert shown(text(alice, f"/memory?instance=support-bot&{empty}")) == ["Ann likes tea"]


def test_filters_by_creation_time(alice: Client, support: Instance) -> None:
    make_memory(support, "now")
    tomorrow = (timezone.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    assert shown(text(alice, f"/memory?instance=support-bot&createdAfter={tomorrow}")) == []
    assert shown(text(alice, f"/memory?instance=support-bot&createdBefore={tomorrow}")) == ["now"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("createdAfter=2026-05-01T00:00", "Created from: 1 May 2026, 00:00"),
        ("occurredBefore=2026-05-01T00:00:00Z", "Happened before: 30 Apr 2026, 17:00"),
        ("createdAfter=0001-01-01T00:00:00Z", "Created from: 1 Jan 0001, 00:00"),
        ("minImportance=1", "Importance from: 1"),
        ("pinned=true", "Pinned: yes"),
    ],
)
def test_filters_in_force_are_said_as_the_reader_says_them(
    alice: Client, support: Instance, query: str, said: str
) -> None:
    alice.cookies["tz"] = "America/Los_Angeles"
    assert f">{said} <" in text(alice, f"/memory?instance=support-bot&{query}")


def test_filter_by_conversation(alice: Client, support: Instance) -> None:
    conversation = make_conversation(support)
    make_memory(support, "linked", sourceConversationId=str(conversation.id))
    make_memory(support, "not linked")
    assert shown(text(alice, f"/memory?instance=support-bot&conversationId={conversation.id}")) == ["linked"]


def test_pages_follow_each_other(alice: Client, support: Instance) -> None:
    make_memories(support, 60)
    first = text(alice, "/memory?instance=support-bot")
    assert len(shown(first)) == 25
    assert "1–25 of 60" in first
    link = re.search(r'href="(\?[^"]*page=2[^"]*)"', first)
    assert link
    second = text(alice, "/memory" + link[1].replace("&amp;", "&"))
    assert "26–50 of 60" in second
    last = text(alice, "/memory?instance=support-bot&page=3")
    assert set(shown(first)) | set(shown(second)) | set(shown(last)) == {
        memory.content for memory in Memory.objects.filter(instance=support)
    }
    assert len(shown(text(alice, "/memory?instance=support-bot&size=100"))) == 60


def test_htmx_gets_the_list_alone(alice: Client, support: Instance) -> None:
    make_memory(support, "hello")
    response = alice.get("/memory?instance=support-bot", headers={"HX-Request": "true"})
    html = response.content.decode()
    assert shown(html) == ["hello"]
    assert "<html" not in html
    assert "HX-Request" in response["Vary"]
    restored = alice.get(
        "/memory?instance=support-bot", headers={"HX-Request": "true", "HX-History-Restore-Request": "true"}
    )
    assert "<html" in restored.content.decode()


def test_content_is_escaped(alice: Client, support: Instance) -> None:
    make_memory(support, "<script>alert(1)</script>", tags=["<b>"], key='"><i>')
    html = text(alice, "/memory?instance=support-bot")
    assert "<script>alert" not in html
    assert "<b>" not in html.replace("<b>8</b>", "").replace("<b>5</b>", "").replace("<b data", "")
    assert '"><i>' not in html


def test_selecting_without_scripts(alice: Client, support: Instance) -> None:
    make_memories(support, 30)
    html = text(alice, "/memory?instance=support-bot&select=page")
    assert len(re.findall(r'name="ids"[^>]*checked', html)) == 25
    assert 'name="all"' not in html
    html = text(alice, "/memory?instance=support-bot&select=all")
    assert '<input type="hidden" name="all" value="1">' in html
    assert '<input type="hidden" name="expected" value="30">' in html


def test_the_instance_is_remembered(superadmin: Client, support: Instance, sales: Instance) -> None:
    response = superadmin.get("/memory")
    assert response.status_code == 302
    assert response["Location"] == "/memory?instance=sales-bot"
    text(superadmin, "/memory?instance=support-bot")
    assert superadmin.get("/memory?category=fact")["Location"] == "/memory?category=fact&instance=support-bot"


def test_the_root_leads_here(alice: Client, support: Instance) -> None:
    assert alice.get("/")["Location"] == "/memory"


def test_empty_states_say_what_to_do(alice: Client, support: Instance) -> None:
    assert "remembers nothing yet" in text(alice, "/memory?instance=support-bot")
    make_memory(support)
    html = text(alice, "/memory?instance=support-bot&category=event")
    assert "Nothing matches these filters" in html
    assert "Show everything" in html


def test_somebody_without_instances_is_told(signed_in, db: None) -> None:
    assert "Ask a superadmin" in text(signed_in(make_user("eve")), "/memory")
    assert "Create an instance" in text(signed_in(make_user("boss", superadmin=True)), "/memory")


def test_a_missing_key_is_said_and_linked(alice: Client, support: Instance) -> None:
    html = text(alice, "/memory?instance=support-bot")
    assert "no OpenAI or Azure key reaches this instance" in html
    assert 'href="/instances/support-bot/settings#openai-key"' in html


def test_other_peoples_private_memories_are_not_there(alice: Client, superadmin: Client, support: Instance) -> None:
    make_memory(support, "bob's secret", visibility="private", owner="bob")
    make_memory(support, "alice's own", visibility="private", owner="alice")
    assert shown(text(alice, "/memory?instance=support-bot")) == ["alice&#x27;s own"]
    assert len(shown(text(superadmin, "/memory?instance=support-bot"))) == 2


def test_what_has_expired_is_not_there(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "short-lived", expiresAt=(timezone.now() + timedelta(days=1)).isoformat())
    assert shown(text(alice, "/memory?instance=support-bot")) == ["short-lived"]
    Memory.objects.filter(pk=memory.pk).update(expires_at=timezone.now())
    assert shown(text(alice, "/memory?instance=support-bot")) == []


def test_strangers_get_a_404(mallory: Client, support: Instance) -> None:
    make_memory(support, "not for mallory")
    for slug in ("support-bot", "no-such-bot", "%00", "../x", "SUPPORT-BOT"):
        response = mallory.get(f"/memory?instance={slug}")
        assert response.status_code == 404, slug
        assert "not for mallory" not in response.content.decode()


def test_anonymous_readers_sign_in_first(client: Client, support: Instance) -> None:
    response = client.get("/memory?instance=support-bot")
    assert response.status_code == 302
    assert response["Location"].startswith("/login?next=/memory")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("minImportance=11", "<b>Importance from</b>: Must be at most 10."),
        ("minImportance=high", "Enter a whole number."),
        ("category=opinion", "is not a category"),
        ("role=boss", "<b>role</b>: “boss” is not a role"),
        ("createdAfter=yesterday", "<b>Created from</b>: Enter a date and time"),
        ("conversationId=nonsense", "<b>Conversation</b>: This is not an id."),
        ("pinned=maybe", "Enter true or false."),
        ("colour=red", "Unknown field."),
        ("owner=%00", "NUL character"),
    ],
)
def test_a_filter_that_makes_no_sense_is_explained(alice: Client, support: Instance, query: str, said: str) -> None:
    make_memory(support, "still there")
    html = text(alice, f"/memory?instance=support-bot&{query}")
    assert said in html
    assert "Show everything" in html
    assert shown(html) == []
    assert 'class="n"' not in html, "what the filters leave is not known"


def test_a_wrong_filter_is_explained_at_its_field_in_the_same_words(alice: Client, support: Instance) -> None:
    html = text(alice, "/memory?instance=support-bot&minImportance=11")
    assert '<p class="error" id="id_minImportance_error">Must be at most 10.</p>' in html
    assert "Select a valid choice" not in html


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("page=0", "There is no page 0; this is page 1."),
        ("page=1000000000", "There is no page 1,000,000,000; this is page 1."),
        ("page=two", "That is not a page number"),
        ("size=7", "A page has 25, 50 or 100 memories."),
        ("sort=colour", "can be sorted by newest, oldest, importance"),
    ],
)
def test_a_page_that_is_not_there_shows_the_nearest(alice: Client, support: Instance, query: str, said: str) -> None:
    make_memory(support, "here")
    html = text(alice, f"/memory?instance=support-bot&{query}")
    assert said in html
    assert shown(html) == ["here"]


def test_a_user_sees_only_their_instances_in_the_picker(alice: Client, support: Instance, sales: Instance) -> None:
    html = text(alice, "/memory?instance=support-bot")
    assert "Sales bot" not in html
    assert User.objects.get(username="alice").last_instance == support


@pytest.mark.parametrize("path", ["/memory", "/memory/new", "/memory/review", "/recall/log", "/procedures/new"])
def test_the_picker_leads_to_the_same_page_of_another_instance(alice: Client, support: Instance, path: str) -> None:
    assert f'<form class="picker" method="get" action="{path}">' in text(alice, f"{path}?instance=support-bot")


def test_the_picker_leads_from_one_memory_to_the_list(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "here")
    picker = '<form class="picker" method="get" action="/memory">'
    assert picker in text(alice, f"/memory/{memory.id}?instance=support-bot")
    question = alice.post("/memory/bulk?instance=support-bot", {"ids": [str(memory.id)], "action": "delete"})
    assert picker in question.content.decode()
    assert picker in text(alice, "/keys")


def test_what_is_pinned_comes_first(alice: Client, support: Instance) -> None:
    make_memory(support, "Old and pinned", pinned=True, category="fact")
    make_memory(support, "Newer and pinned", pinned=True)
    make_memories(support, 30)
    make_memory(support, "Newest")
    first = shown(text(alice, "/memory?instance=support-bot"))
    assert first[:3] == ["Newer and pinned", "Old and pinned", "Newest"]
    assert len(first) == 27
    second = shown(text(alice, "/memory?instance=support-bot&page=2"))
    assert second[-2:] == ["Newer and pinned", "Old and pinned"], "their own place stays theirs"
    assert shown(text(alice, "/memory?instance=support-bot&category=fact")) == ["Old and pinned"]
    assert shown(text(alice, "/memory?instance=support-bot&sort=oldest"))[0] == "Old and pinned"
    assert shown(text(alice, "/memory?instance=support-bot&pinned=false"))[0] == "Newest"


def test_on_the_first_page_nothing_is_there_twice(alice: Client, support: Instance) -> None:
    make_memory(support, "Plain")
    make_memory(support, "Pinned", pinned=True)
    make_memory(support, "Newest")
    html = text(alice, "/memory?instance=support-bot&select=page")
    assert shown(html) == ["Pinned", "Newest", "Plain"]
    assert "3 selected" in html


def test_pinned_private_memories_of_others_stay_hidden(alice: Client, support: Instance) -> None:
    make_memory(support, "Bob's own", pinned=True, visibility="private", owner="bob")
    make_memory(support, "For everybody")
    assert shown(text(alice, "/memory?instance=support-bot")) == ["For everybody"]


@pytest.mark.parametrize(("word", "role"), [("lesson", "lesson"), ("warning", "lesson"), ("Past", "historical")])
def test_the_role_filter_knows_aliases(alice: Client, support: Instance, word: str, role: str) -> None:
    make_memory(support, "Found", role=role)
    make_memory(support, "Not found")
    html = text(alice, f"/memory?instance=support-bot&role={word}")
    assert shown(html) == ["Found"]
    assert f'<option value="{role}" selected>' in html
    assert f"Role: {role}" in html


def test_an_unknown_role_is_named(alice: Client, support: Instance) -> None:
    assert "“boss” is not a role" in text(alice, "/memory?instance=support-bot&role=boss")
