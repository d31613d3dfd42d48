"""POST /memory/bulk and /memory/bulk-delete"""

from typing import Any

import pytest
from django.test import Client

from instances.models import Instance
from memories.models import Memory, MemoryVersion
from tests.factories import make_memories, make_memory

pytestmark = pytest.mark.django_db

BULK = "/memory/bulk?instance=support-bot"
DELETE = "/memory/bulk-delete?instance=support-bot"


def ids(*memories: Memory) -> list[str]:
    return [str(memory.id) for memory in memories]


def values(instance: Instance, field: str) -> list[Any]:
    return list(Memory.objects.filter(instance=instance).order_by("id").values_list(field, flat=True))


@pytest.mark.parametrize("expected", ["", "x", "9" * 5000])
def test_a_number_that_is_none_selects_nothing(alice: Client, support: Instance, expected: str) -> None:
    make_memory(support)
    answer = alice.post(BULK, {"all": "1", "expected": expected, "action": "pin"}, follow=True)
    assert "Nothing is selected." in answer.content.decode()
    assert values(support, "pinned") == [False]


@pytest.mark.parametrize(
    ("action", "sent", "field", "after"),
    [
        ("category", {"category": "event"}, "category", ["event", "event", "general"]),
        ("importance", {"importance": "9"}, "importance", [9, 9, 5]),
        ("tag", {"tag": "vip"}, "tags", [["vip"], ["vip"], []]),
        ("pin", {}, "pinned", [True, True, False]),
        ("role", {"role": "lesson"}, "role", ["lesson", "lesson", "context"]),
        ("role", {"role": "warning"}, "role", ["lesson", "lesson", "context"]),
    ],
)
def test_one_change_for_the_selected(
    alice: Client, support: Instance, action: str, sent: dict[str, str], field: str, after: list[Any]
) -> None:
    memories = make_memories(support, 3)
    response = alice.post(BULK, {"ids": ids(*memories[:2]), "action": action, **sent}, follow=True)
    assert "Changed 2 memories." in response.content.decode()
    assert values(support, field) == after


@pytest.mark.parametrize("after", [{"action": "pin"}, {"action": "tag", "tag": ""}, {"action": ""}])
def test_the_reader_stays_on_the_page_they_were_on(alice: Client, support: Instance, after: dict[str, str]) -> None:
    chosen = ids(*make_memories(support, 60)[:2])
    here = "&category=general&page=2&size=25"
    response = alice.post(f"{BULK}{here}&select=page", {"ids": chosen, **after})
    assert response.url == f"/memory?instance=support-bot{here}"
    asked = alice.post(BULK + here, {"ids": chosen, "action": "delete"}).content.decode()
    assert f'href="/memory?instance=support-bot{here.replace("&", "&amp;")}"' in asked
    assert alice.post(DELETE + here, {"ids": chosen}).url == f"/memory?instance=support-bot{here}"
    everything = {"all": "1", "expected": "58", "action": "pin"}
    assert alice.post(BULK + here, everything).url == "/memory?instance=support-bot&category=general&size=25"


def test_a_tag_is_removed_from_the_selected(alice: Client, support: Instance) -> None:
    memories = make_memories(support, 3, tags=["vip", "tea"])
    sent = {"ids": ids(*memories[:2]), "action": "untag", "tag": " vip "}
    assert "Changed 2 memories." in alice.post(BULK, sent, follow=True).content.decode()
    assert values(support, "tags") == [["tea"], ["tea"], ["vip", "tea"]]
    sent["tag"] = ""
    assert "Enter the tag to remove." in alice.post(BULK, sent, follow=True).content.decode()


def test_several_tags_are_added_and_removed_at_once(alice: Client, support: Instance) -> None:
    memories = [make_memory(support, tags=["a", "a, b"]), make_memory(support)]
    sent = {"ids": ids(*memories), "action": "tag", "tag": "a, b"}
    assert "Changed 2 memories." in alice.post(BULK, sent, follow=True).content.decode()
    assert sorted(values(support, "tags")) == [["a", "a, b", "b"], ["a", "b"]]
    alice.post(BULK, {**sent, "action": "untag"})
    assert values(support, "tags") == [[], []]


def test_a_memory_has_at_most_so_many_tags(alice: Client, support: Instance) -> None:
    memories = [make_memory(support), make_memory(support, tags=[f"t{n}" for n in range(32)])]
    sent = {"ids": ids(*memories), "action": "tag", "tag": "one more"}
    assert "at most 32 tags" in alice.post(BULK, sent, follow=True).content.decode()
    assert values(support, "tags")[0] == []


def test_a_bulk_change_of_what_they_say_leaves_versions(alice: Client, support: Instance) -> None:
    memories = make_memories(support, 3)
    alice.post(BULK, {"ids": ids(*memories), "action": "category", "category": "fact"})
    alice.post(BULK, {"ids": ids(*memories), "action": "pin"})
    assert MemoryVersion.objects.filter(instance=support, reason="bulk change").count() == 3
    response = alice.post(BULK, {"ids": ids(*memories), "action": "category", "category": "fact"}, follow=True)
    assert "Changed 0 memories. 3 needed no change." in response.content.decode()
    assert MemoryVersion.objects.count() == 3


def test_all_matching_means_the_filters_in_the_url(alice: Client, support: Instance) -> None:
    make_memories(support, 30, category="fact")
    make_memories(support, 2)
    alice.post(f"{BULK}&category=fact", {"all": "1", "expected": "30", "action": "importance", "importance": "1"})
    assert Memory.objects.filter(instance=support, importance=1).count() == 30


def test_before_deleting_a_page_lists_what_goes(alice: Client, support: Instance) -> None:
    kept = make_memory(support, "stays")
    memories = [make_memory(support, "goes one"), make_memory(support, "goes two")]
    html = alice.post(BULK, {"ids": ids(*memories), "action": "delete"}).content.decode()
    assert "Delete 2 memories" in html
    assert "goes one" in html
    assert "goes two" in html
    assert "stays" not in html
    assert Memory.objects.count() == 3
    response = alice.post(DELETE, {"ids": ids(*memories)}, follow=True)
    assert "Deleted 2 memories with 2 search entries. Nothing of them is left." in response.content.decode()
    assert list(Memory.objects.all()) == [kept]


def test_deleting_everything_that_matches(alice: Client, support: Instance, sales: Instance) -> None:
    make_memories(support, 120, category="event")
    make_memories(support, 1)
    make_memories(sales, 2, category="event")
    html = alice.post(f"{BULK}&category=event", {"all": "1", "expected": "120", "action": "delete"}).content.decode()
    assert "Delete 120 memories" in html
    assert "… and 20 more." in html
    alice.post(f"{DELETE}&category=event", {"all": "1", "expected": "120"})
    assert Memory.objects.filter(instance=support).count() == 1
    assert Memory.objects.filter(instance=sales).count() == 2


def test_a_list_that_has_changed_deletes_nothing(alice: Client, support: Instance) -> None:
    make_memories(support, 3)
    response = alice.post(DELETE, {"all": "1", "expected": "2"}, follow=True)
    assert "3 memories match now, not 2. Nothing was deleted." in response.content.decode()
    assert Memory.objects.count() == 3
    response = alice.post(BULK, {"all": "1", "expected": "1234", "action": "pin"}, follow=True)
    assert "3 memories match now, not 1,234. Nothing was changed." in response.content.decode()
    assert not Memory.objects.filter(pinned=True).exists()


def test_what_somebody_else_has_deleted_meanwhile_is_not_counted(alice: Client, support: Instance) -> None:
    first, gone, last = make_memories(support, 3)
    selected, only_gone = ids(first, gone, last), ids(gone)
    gone.delete()

    html = alice.post(BULK, {"ids": selected, "action": "pin"}, follow=True).content.decode()
    assert "Changed 2 memories. 1 of the selected is not there any more." in html

    html = alice.post(BULK, {"ids": selected, "action": "delete"}).content.decode()
    assert "Delete 2 memories" in html
    assert "1 of the selected is not there any more." in html
    assert only_gone[0] not in html

    response = alice.post(BULK, {"ids": only_gone, "action": "delete"}, follow=True)
    assert response.redirect_chain == [("/memory?instance=support-bot", 302)]
    assert "1 of the selected is not there any more." in response.content.decode()


def test_nothing_selected_and_nonsense(alice: Client, support: Instance) -> None:
    memory = make_memory(support)
    for sent, said in (
        ({"action": "delete"}, "Nothing is selected."),
        ({"action": "explode", "ids": ids(memory)}, "Choose what to do with the selected memories."),
        ({"action": "importance", "importance": "11", "ids": ids(memory)}, "Must be at most 10."),
        ({"action": "category", "category": "opinion", "ids": ids(memory)}, "is not a category"),
        ({"action": "tag", "tag": " ", "ids": ids(memory)}, "Enter the tag to add."),
    ):
        assert said in alice.post(BULK, sent, follow=True).content.decode()
    assert alice.post(BULK, {"ids": "nonsense", "action": "pin"}).status_code == 404
    assert Memory.objects.get(instance=support).importance == 5


def test_foreign_ids_change_and_delete_nothing(alice: Client, support: Instance, sales: Instance) -> None:
    own, foreign = make_memory(support), make_memory(sales)
    response = alice.post(DELETE, {"ids": ids(own, foreign)}, follow=True)
    assert "1 of 2 memories are not in this instance. Nothing was deleted." in response.content.decode()
    alice.post(BULK, {"ids": ids(own, foreign), "action": "pin"})
    assert not Memory.objects.get(pk=foreign.pk).pinned
    assert Memory.objects.count() == 2


def test_strangers_get_a_404(mallory: Client, support: Instance) -> None:
    memory = make_memory(support)
    assert mallory.post(BULK, {"ids": ids(memory), "action": "pin"}).status_code == 404
    assert mallory.post(DELETE, {"ids": ids(memory)}).status_code == 404
    assert Memory.objects.count() == 1


def test_a_bulk_change_counts_versions_and_leaves_alone_what_is_like_that(alice: Client, support: Instance) -> None:
    first, second, third = make_memories(support, 3, category="fact")
    for category in ("event", "decision"):
        alice.post(BULK, {"ids": ids(first, second), "action": "category", "category": category})
    html = alice.post(
        BULK, {"ids": ids(first, second, third), "action": "category", "category": "decision"}, follow=True
    )
    assert "Changed 1 memory. 2 needed no change." in html.content.decode()
    versions = MemoryVersion.objects.order_by("memory_id", "number").values_list("memory_id", "number", "category")
    kept = [(each.id, n, was) for each in (first, second) for n, was in ((1, "fact"), (2, "event"))]
    assert list(versions) == [*kept, (third.id, 1, "fact")]
