from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.listing import ConversationFilters, list_page
from conversations.models import Conversation
from instances.models import Instance
from memories.paging import Page
from tests.factories import make_conversation, make_memory, scope_of

pytestmark = pytest.mark.django_db
URL = "/conversations?instance=support-bot"


def shown(client: Client, query: str = "", **headers: str) -> str:
    response = client.get(URL + query, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def test_the_latest_come_first_with_their_memories(alice: Client, support: Instance) -> None:
    older = make_conversation(support, "hello", "hi", title="About bananas", channel="chat", userId="dora")
    make_conversation(support, "hello", externalId="ticket-7", channel="email")
    Conversation.objects.filter(id=older.id).update(last_message_at=timezone.now() - timedelta(days=1))
    make_memory(support, "Likes bananas", sourceConversationId=str(older.id))
    make_memory(support, "Secret", sourceConversationId=str(older.id), visibility="private", owner="somebody")

    page = shown(alice)

    assert page.index("ticket-7") < page.index("About bananas")
    assert f'href="/conversations/{older.id}?instance=support-bot"' in page
    assert f'href="/memory?instance=support-bot&amp;conversationId={older.id}" aria-label="1 memory from' in page
    assert "dora" in page
    assert "1–2 of 2" in page


def test_it_can_be_filtered(alice: Client, support: Instance) -> None:
    make_conversation(support, title="One", channel="chat", userId="dora")
    make_conversation(support, title="Two", channel="email", userId="emil")

    assert "Two" not in shown(alice, "&channel=chat")
    assert "Two" in shown(alice, "&channel=&user=")
    assert "One" not in shown(alice, "&user=emil")
    assert "No conversation matches" in shown(alice, "&channel=chat&user=emil")
    assert "No conversation matches" in shown(alice, "&channel=chat%27%20OR%20true")


def test_empty_says_what_to_do(alice: Client, support: Instance) -> None:
    assert "no conversations yet" in shown(alice)


def test_pages_follow_each_other_in_both_directions(alice: Client, support: Instance) -> None:
    moment = timezone.now()
    for n in range(60):
        conversation = make_conversation(support, title=f"Number {n:02}")
        # Three at a time at the same moment: the id decides between them.
        Conversation.objects.filter(id=conversation.id).update(last_message_at=moment + timedelta(minutes=n // 3))
    expected = [f"Number {n:02}" for n in sorted(range(60), reverse=True)]

    def titles(query: str) -> list[str]:
        response = alice.get(URL + query)
        return [conversation.title for conversation in response.context["page"].rows]

    assert titles("&page=1") == expected[:25]
    assert titles("&page=3") == expected[50:]
    assert titles("&size=50&page=2") == expected[50:]
    page = shown(alice, "&page=2&channel=")
    assert 'aria-label="Next page"' in page
    assert 'aria-current="page"' in page
    assert "26–50 of 60" in page


@pytest.mark.parametrize(
    "anchor",
    [
        "",
        "x",
        "2~5~6",
        "2~2026-01-01~",
        "9" * 5000,
        "2~2026-01-01 00:00:00~nonsense",
        "2~2026-01-01 00:00:00~" + "0" * 32,
    ],
)
def test_an_anchor_that_makes_no_sense_is_no_anchor(alice: Client, support: Instance, anchor: str) -> None:
    for n in range(30):
        make_conversation(support, title=f"Number {n:02}")
    response = alice.get("/conversations", {"instance": "support-bot", "page": "2", "anchor": anchor})
    assert [row.title for row in response.context["page"].rows] == [f"Number {n:02}" for n in (4, 3, 2, 1, 0)]


def test_a_page_is_the_same_from_every_anchor(support: Instance) -> None:
    moment = timezone.now()
    for n in range(24):
        conversation = make_conversation(support, title=f"Number {n:02}")
        Conversation.objects.filter(id=conversation.id).update(last_message_at=moment + timedelta(minutes=n // 3))
    scope = scope_of(support)

    def page(number: int, anchor: str = "") -> Page[Conversation]:
        return list_page(scope, ConversationFilters(), number=number, size=2, anchor=anchor)

    plain = [page(number) for number in range(1, 13)]
    assert [row.title for each in plain for row in each.rows] == [f"Number {n:02}" for n in reversed(range(24))]
    for number in range(4, 10):
        for near in (-2, -1, 1, 2):
            assert page(number, plain[number - 1 + near].anchor).rows == plain[number - 1].rows


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("&page=0", "There is no page 0; this is page 1."),
        ("&page=1000000000", "There is no page 1,000,000,000; this is page 1."),
        ("&page=last", "That is not a page number"),
        ("&page=" + "9" * 5000, "That is not a page number"),
        ("&size=101", "A page has 25, 50 or 100 conversations."),
        ("&channel=a%00b", "The NUL character is not allowed."),
        ("&user=" + "u" * 201, "At most 200 characters are allowed"),
    ],
)
def test_bad_input_is_explained(alice: Client, support: Instance, query: str, says: str) -> None:
    make_conversation(support, title="One")
    assert says in shown(alice, query)


def test_htmx_gets_the_list_alone(alice: Client, support: Instance) -> None:
    make_conversation(support, title="One")
    response = alice.get(URL, headers={"HX-Request": "true"})
    assert "<html" not in response.content.decode()
    assert "HX-Request" in response.headers["Vary"]
    assert "<html" in shown(alice, **{"HX-Request": "true", "HX-History-Restore-Request": "true"})


def test_the_number_of_queries_does_not_grow(alice: Client, support: Instance) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            shown(alice)
        return len(captured)

    make_conversation(support, "hello")
    shown(alice)
    before = queries()
    for _ in range(10):
        make_conversation(support, "hello")
    assert queries() == before


def test_text_is_escaped(alice: Client, support: Instance) -> None:
    make_conversation(support, title="<script>alert(1)</script>", channel='"><b>', userId="<i>")
    page = shown(alice)
    assert "<script>alert" not in page
    assert "<i>" not in page


def test_strangers_get_a_404(mallory: Client, client: Client, support: Instance) -> None:
    make_conversation(support, title="Confidential")
    assert mallory.get(URL).status_code == 404
    assert mallory.get("/conversations?instance=no-such-bot").status_code == 404
    assert "Confidential" not in mallory.get("/conversations", follow=True).content.decode()
    assert client.get(URL).url == "/login?next=/conversations%3Finstance%3Dsupport-bot"
