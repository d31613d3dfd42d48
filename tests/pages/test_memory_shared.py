"""Memories another instance shares, in the search of /memory and on /memory/<id>: to read, not to change."""

import re

import pytest
from django.test import Client

from accounts.models import Membership
from instances.models import Instance
from memories.models import Memory
from tests.factories import make_memory

pytestmark = pytest.mark.django_db


@pytest.fixture
def shared(support: Instance) -> Memory:
    return make_memory(support, "Refunds take <b>thirty</b> days", visibility="team")


@pytest.fixture
def granted(mallory: Client, sales: Instance) -> Client:
    Membership.objects.filter(user__username="mallory").update(read_team=True)
    return mallory


def test_a_hit_says_whose_it_is_and_offers_nothing_to_change(granted: Client, shared: Memory) -> None:
    html = granted.get("/memory?instance=sales-bot&search=refunds").content.decode()
    assert "Shared by Support bot" in html
    assert f'value="{shared.id}"' not in html
    for action in ("pin", "edit", "delete"):
        assert f"/memory/{shared.id}/{action}" not in html


def test_recall_offers_to_mark_only_what_is_its_own(granted: Client, sales: Instance, shared: Memory) -> None:
    own = make_memory(sales, "Refunds are rare")
    html = granted.get("/recall?instance=sales-bot&query=refunds").content.decode()
    assert f'href="/memory/{shared.id}?instance=sales-bot"' in html
    assert re.findall(r'name="memory" value="(.*?)"', html) == [str(own.id)]


@pytest.mark.parametrize(("query", "says"), [("refunds", "It is in the block"), ("", "Type a message above")])
def test_recall_says_why_about_it_too(granted: Client, shared: Memory, query: str, says: str) -> None:
    html = granted.get(f"/recall?instance=sales-bot&query={query}&memory={shared.id}").content.decode()
    why = html.partition('id="why"')[2].partition("</section>")[0]
    assert "Refunds take &lt;b&gt;thirty&lt;/b&gt; days" in why
    assert says in why
    assert "Should this question bring it?" not in why, "it cannot be marked"


def test_it_can_be_read(granted: Client, shared: Memory) -> None:
    html = granted.get(f"/memory/{shared.id}?instance=sales-bot").content.decode()
    assert "Refunds take &lt;b&gt;thirty&lt;/b&gt; days" in html
    assert "This memory belongs to Support bot" in html
    assert "Open it in" not in html, "Mallory cannot open the support bot"
    assert "/edit" not in html


def test_who_may_open_its_instance_gets_the_link(superadmin: Client, sales: Instance, shared: Memory) -> None:
    html = superadmin.get(f"/memory/{shared.id}?instance=sales-bot").content.decode()
    assert f'href="/memory/{shared.id}?instance=support-bot"' in html


@pytest.mark.parametrize("action", ["edit", "delete", "pin"])
def test_it_cannot_be_changed_from_there(granted: Client, shared: Memory, action: str) -> None:
    assert granted.post(f"/memory/{shared.id}/{action}?instance=sales-bot", {"pinned": "true"}).status_code == 404
    assert Memory.objects.filter(id=shared.id, pinned=False).exists()


def test_without_the_grant_there_is_nothing(mallory: Client, shared: Memory) -> None:
    assert "Refunds" not in mallory.get("/memory?instance=sales-bot&search=refunds").content.decode()
    assert mallory.get(f"/memory/{shared.id}?instance=sales-bot").status_code == 404
