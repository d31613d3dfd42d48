import pytest
from django.test import Client

from accounts.access import SHELL
from accounts.models import AccountEvent
from conversations.models import Conversation, Message
from instances.models import Instance
from memories.demo import load_demo
from memories.models import Memory
from tests.factories import make_conversation, make_instance, make_memories, make_memory

pytestmark = pytest.mark.django_db


def test_the_list_shows_one_s_own_instances(alice: Client, support: Instance, sales: Instance) -> None:
    make_memories(support, 3)
    make_memory(support, "mine", visibility="private", owner="alice")
    make_memory(support, "theirs", visibility="private", owner="somebody")

    page = alice.get("/instances").content.decode()

    assert 'aria-label="4 memories of support-bot"' in page
    assert "sales-bot" not in page
    assert "No OpenAI key" in page
    assert 'href="/instances/support-bot/settings#openai-key"' in page
    assert "/instances/new" not in page


def test_a_number_is_read_aloud_as_it_is_shown(superadmin: Client, support: Instance) -> None:
    """Voice control presses what is on the screen: "click 1,001"."""
    make_memories(support, 1001)
    assert 'aria-label="1,001 memories of support-bot">1,001</a>' in superadmin.get("/instances").content.decode()


def test_a_superadmin_sees_all(superadmin: Client, support: Instance, sales: Instance) -> None:
    make_memory(support, "theirs", visibility="private", owner="somebody")
    page = superadmin.get("/instances").content.decode()
    assert 'aria-label="1 memory of support-bot"' in page
    assert 'aria-label="0 memories of sales-bot"' in page
    assert "/instances/new" in page


def test_the_list_costs_the_same_for_many(superadmin: Client, django_assert_max_num_queries) -> None:
    for _ in range(6):
        make_instance()
    with django_assert_max_num_queries(6):
        superadmin.get("/instances")


def test_without_instances_it_says_what_to_do(superadmin: Client, signed_in) -> None:
    assert "Create the first instance" in superadmin.get("/instances").content.decode()


def test_a_new_instance(superadmin: Client) -> None:
    assert superadmin.get("/instances/new").status_code == 200

    values = {"name": "Help desk", "slug": "", "team": "Care", "organisation": "Example Ltd"}
    response = superadmin.post("/instances/new", values)

    assert response.url == "/instances/help-desk/settings"
    instance = Instance.objects.get()
    assert (instance.slug, instance.name, str(instance.team)) == ("help-desk", "Help desk", "Care")
    assert str(instance.team.organisation) == "Example Ltd"
    assert AccountEvent.objects.get(action="instance created").actor == "user root"
    ready = 'Help desk is ready. Now <a href="/keys/new?instance=help-desk">make an API key</a> for its engine.'
    assert ready in superadmin.get(response.url).content.decode()


def test_the_slug_is_suggested_from_the_name(superadmin: Client, support: Instance) -> None:
    def suggested(name: str) -> str:
        headers = {"HX-Request": "true"}
        return superadmin.get("/instances/new", {"name": name, "slug": ""}, headers=headers).content.decode()

    assert 'placeholder="help-desk-2nd-line"' in suggested("Help Desk, 2nd line")
    assert 'placeholder="support-bot-2"' in suggested("Support bot")
    assert 'placeholder=""' in suggested("東京")
    assert "<html" not in suggested("x")
    superadmin.post("/instances/new", {"name": "Support bot"})
    assert Instance.objects.filter(slug="support-bot-2").exists()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "n" * 101}, "at most 100 characters"),
        ({"name": "a\x00b"}, "Null characters are not allowed."),
        ({"name": "東京"}, "None can be made of this name. Enter one."),
        ({"name": "x", "slug": "support-bot"}, "An instance with this slug exists already."),
        ({"name": "x", "slug": "Not A Slug"}, "lower-case letters, digits and hyphens"),
        ({"name": "x", "slug": "s" * 65}, "at most 64 characters"),
    ],
)
def test_bad_input_makes_no_instance(superadmin: Client, support: Instance, values: dict[str, str], says: str) -> None:
    response = superadmin.post("/instances/new", values)
    assert response.status_code == 200
    assert says in response.content.decode()
    assert Instance.objects.count() == 1


def test_deleting_takes_the_slug_and_everything(superadmin: Client, support: Instance, sales: Instance) -> None:
    make_memories(support, 3)
    make_conversation(support, "hello", "good morning")
    kept = make_memory(sales)
    page = superadmin.get("/instances/support-bot/delete").content.decode()
    assert "3 memories" in page
    assert "1 conversation" in page

    for slug in ("", "sales-bot", "Support-bot", "support-bot\x00"):
        response = superadmin.post("/instances/support-bot/delete", {"confirm": slug})
        assert response.status_code == 200
        assert 'class="error"' in response.content.decode()
    assert Memory.objects.filter(instance=support).count() == 3

    response = superadmin.post("/instances/support-bot/delete", {"confirm": "support-bot"}, follow=True)

    assert "is deleted, with 3 memories and 1 conversation. Nothing" in response.content.decode()
    assert list(Instance.objects.all()) == [sales]
    assert [memory.id for memory in Memory.objects.all()] == [kept.id]
    assert not Conversation.objects.exists()
    assert not Message.objects.exists()
    event = AccountEvent.objects.get(action="instance deleted")
    assert event.detail == {"id": str(support.id), "memories": 3, "conversations": 1}
    assert superadmin.post("/instances/support-bot/delete", {"confirm": "support-bot"}).status_code == 404


def test_the_demo_goes_with_one_button(superadmin: Client, support: Instance) -> None:
    assert "Remove the demo" not in superadmin.get("/instances").content.decode()
    support.delete()
    load_demo(SHELL)
    kept = make_instance("kept-bot")
    assert "Remove the demo" in superadmin.get("/instances").content.decode()
    assert "sales-bot" in superadmin.get("/instances/remove-demo").content.decode()

    response = superadmin.post("/instances/remove-demo", follow=True)

    assert "The demo is removed" in response.content.decode()
    assert list(Instance.objects.all()) == [kept]


def test_users_make_and_delete_nothing(alice: Client, mallory: Client, client: Client, support: Instance) -> None:
    for path in ("/instances/new", "/instances/remove-demo"):
        assert client.get(path).url == f"/login?next={path}"
        assert alice.get(path).status_code == 403
        assert alice.post(path, {"name": "x"}).status_code == 403
    assert client.get("/instances/support-bot/delete").url.startswith("/login")
    assert alice.post("/instances/support-bot/delete", {"confirm": "support-bot"}).status_code == 403
    assert mallory.post("/instances/support-bot/delete", {"confirm": "support-bot"}).status_code == 404
    assert Instance.objects.filter(slug="support-bot").exists()
