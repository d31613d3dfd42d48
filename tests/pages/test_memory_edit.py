"""GET and POST /memory/<id>/edit"""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from instances.models import Instance
from memories.draft import MemoryChanges
from memories.forms.editing import values_of
from memories.models import AuditEntry, Memory, MemoryVersion
from memories.store import change
from tests.factories import make_memory, scope_of

pytestmark = pytest.mark.django_db


def filled(memory: Memory, **fields: Any) -> dict[str, Any]:
    """The form as the browser sends it: what the page showed, with some fields changed."""
    shown = {name: value for name, value in values_of(memory).items() if value not in (None, False)}
    return {**shown, "seen": memory.updated_at.isoformat(), **fields}


def url(memory: Memory) -> str:
    return f"/memory/{memory.id}/edit?instance=support-bot"


def test_a_correction_keeps_the_earlier_text(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Demo on Monday", importance=4, tags=["demo"])
    response = alice.post(
        url(memory), filled(memory, content="Demo on Tuesday", importance="6", supersede_reason="moved"), follow=True
    )
    assert "Saved. The earlier version is kept" in response.content.decode()
    changed = Memory.objects.get(instance=support)
    assert (changed.id, changed.content, changed.importance, changed.tags) == (
        memory.id, "Demo on Tuesday", 6, ["demo"],
    )  # fmt: skip
    version = MemoryVersion.objects.get(instance=support)
    assert (version.content, version.importance, version.reason, version.actor) == (
        "Demo on Monday", 4, "moved", "user alice",
    )  # fmt: skip


def test_it_is_saved_from_the_results_of_a_very_long_search(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Demo on Monday")
    address = f"{url(memory)}&{urlencode({'back': urlencode({'search': '退' * 2000})})}"
    response = alice.post(address, filled(memory, content="Demo on Tuesday"))
    assert response.status_code == 302


@pytest.mark.parametrize("seen", ["", "yesterday", "2026-99-99T00:00:00+00:00"])
def test_a_page_that_does_not_say_what_it_showed_is_saved_as_it_is(alice: Client, support: Instance, seen: str) -> None:
    memory = make_memory(support, "Demo on Monday")
    assert alice.post(url(memory), filled(memory, content="Demo on Tuesday", seen=seen)).status_code == 302
    assert Memory.objects.get().content == "Demo on Tuesday"


def test_a_summary_is_seen_with_its_text_and_saved_with_it(alice: Client, support: Instance) -> None:
    without, memory = make_memory(support, "Demo soon"), make_memory(support, "Demo on Munday", summary="A demo")
    assert '<details class="more">' in alice.get(url(without)).content.decode()
    assert '<details class="more" open>' in alice.get(url(memory)).content.decode()
    alice.post(url(memory), filled(memory, content="Demo on Monday"))
    memory.refresh_from_db()
    assert (memory.content, memory.summary) == ("Demo on Monday", "A demo")
    alice.post(url(memory), filled(memory, content="Demo on Friday", summary=""))
    memory.refresh_from_db()
    assert (memory.content, memory.summary) == ("Demo on Friday", "")


@pytest.mark.parametrize(("why", "kept"), [("", "minor correction"), ("a typo", "a typo")])
def test_a_minor_correction(alice: Client, support: Instance, why: str, kept: str) -> None:
    memory = make_memory(support, "Demo on Munday")
    fields = filled(memory, content="Demo on Monday", supersede_reason=why, is_minor="on")
    assert alice.post(url(memory), fields).status_code == 302
    assert MemoryVersion.objects.get(instance=support).reason == kept


def test_a_save_without_changes_leaves_no_version(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "As it was", occurredAt="2026-05-12T15:00:00Z")
    response = alice.post(url(memory), filled(memory), follow=True)
    assert "Nothing was changed." in response.content.decode()
    assert not MemoryVersion.objects.exists()
    assert Memory.objects.get(instance=support).updated_at == memory.updated_at


def test_what_leaves_no_version_promises_none(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Demo on Monday")
    page = alice.post(url(memory), filled(memory, tags="demo"), follow=True).content.decode()
    assert "Saved." in page
    assert "earlier version is kept" not in page
    assert not MemoryVersion.objects.exists()


def test_credentials_that_were_replaced_are_told(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Demo on Monday")
    response = alice.post(url(memory), filled(memory, content="password: hunter2secret"), follow=True)
    assert "kept in its history. Credentials in it were replaced" in response.content.decode()
    assert Memory.objects.get(instance=support).content == "password: [redacted password]"


# When summer time ends the clock shows an hour twice; when it begins it skips one.
FIRST, SECOND = "2096-11-04T08:30:37+00:00", "2096-11-04T09:30:37+00:00"


@pytest.mark.parametrize("stored", [FIRST, SECOND])
@pytest.mark.parametrize("field", ["occurred_at", "expires_at"])
def test_a_time_the_clock_shows_twice_stays_as_it_is(alice: Client, support: Instance, field: str, stored: str) -> None:
    moment = datetime.fromisoformat(stored)
    memory = change(scope_of(support), make_memory(support, "Was").id, MemoryChanges(**{field: moment}))
    alice.cookies["tz"] = "America/Los_Angeles"
    assert 'value="2096-11-04T01:30"' in alice.get(url(memory)).content.decode()
    response = alice.post(url(memory), filled(memory, content="Is", **{field: "2096-11-04T01:30"}))
    assert response.status_code == 302
    changed = Memory.objects.get(instance=support)
    assert (changed.content, getattr(changed, field)) == ("Is", moment)
    assert AuditEntry.objects.filter(action="changed").latest("id").detail == {"fields": ["content"]}


def test_a_time_the_clock_shows_twice_is_the_first_when_entered(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Was", occurredAt="2026-05-12T15:00:00Z")
    alice.cookies["tz"] = "America/Los_Angeles"
    assert alice.post(url(memory), filled(memory, occurred_at="2096-11-04T01:30")).status_code == 302
    occurred_at = Memory.objects.get(instance=support).occurred_at
    assert occurred_at == datetime.fromisoformat(FIRST).replace(second=0)


def test_a_time_the_clock_skips_is_refused_with_the_reason(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Was", occurredAt="2026-05-12T15:00:00Z")
    alice.cookies["tz"] = "America/Los_Angeles"
    html = alice.post(url(memory), filled(memory, occurred_at="2026-03-08T02:30")).content.decode()
    assert "The clocks are put forward over this time. Choose an earlier or a later one." in html
    assert Memory.objects.get(instance=support).occurred_at == memory.occurred_at


def test_the_end_of_the_calendar_is_shown_and_kept(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Was", expiresAt="9999-12-31T23:59:59Z")
    alice.cookies["tz"] = "Asia/Tokyo"
    for page in ("/memory?instance=support-bot", f"/memory/{memory.id}?instance=support-bot"):
        assert "31 December 9999, 23:59:59 UTC" in alice.get(page).content.decode()
    assert 'value="9999-12-31T23:59"' in alice.get(url(memory)).content.decode()
    alice.post(url(memory), filled(memory, content="Is", expires_at="9999-12-31T23:59"))
    changed = Memory.objects.get(instance=support)
    assert (changed.content, changed.expires_at) == ("Is", memory.expires_at)


def test_two_editors_do_not_overwrite_each_other(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Original")
    mine = filled(memory, content="Mine")
    change(scope_of(support), memory.id, MemoryChanges(content="Theirs"))
    html = alice.post(url(memory), mine).content.decode()
    assert "Somebody changed this memory while you were writing." in html
    assert "Mine" in html
    assert "Theirs" in html
    assert Memory.objects.get(instance=support).content == "Theirs"


def test_whatever_was_changed_meanwhile_is_said_before_it_is_undone(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Original", importance=5, occurredAt="2026-05-12T15:00:00Z")
    mine = filled(memory, content="Mine")
    theirs = {"importance": 9, "tags": ["vip", "late"], "pinned": True, "role": "lesson", "occurred_at": None}
    change(scope_of(support), memory.id, MemoryChanges(**theirs))
    html = alice.post(url(memory), mine).content.decode()
    for said in ("Importance: 9", "Tags: vip, late", "Pinned: yes", "Role: Lesson", "Happened at: none"):
        assert f"<p>{said}</p>" in html
    assert "Category: " not in html


def test_bad_input_changes_nothing(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "Original", key="a")
    make_memory(support, "Other", key="b")
    for fields, said in (
        ({"content": " "}, "This may not be empty."),
        ({"importance": "11"}, "11 is not one of the available choices"),
        ({"key": "b"}, "Another memory has this key."),
        ({"visibility": "private"}, "A private memory needs an owner."),
    ):
        assert said in alice.post(url(memory), filled(memory, **fields)).content.decode()
    assert Memory.objects.get(pk=memory.pk).content == "Original"
    assert not MemoryVersion.objects.exists()


@pytest.mark.parametrize("page", ["", "/edit", "/history", "/delete"])
def test_every_page_of_a_memory_leads_back_to_the_list_it_was_opened_from(
    alice: Client, support: Instance, page: str
) -> None:
    memory = make_memory(support, "Demo on Monday")
    html = alice.get(f"/memory/{memory.id}{page}?instance=support-bot&back=search%3Ddemo%26page%3D2").content.decode()
    assert '<a href="/memory?search=demo&amp;page=2&amp;instance=support-bot">Memory</a>' in html


def test_strangers_cannot_edit(mallory: Client, support: Instance) -> None:
    memory = make_memory(support, "Original")
    assert mallory.post(url(memory), filled(memory, content="Hacked")).status_code == 404
    other = f"/memory/{memory.id}/edit?instance=sales-bot"
    assert mallory.post(other, filled(memory, content="Hacked")).status_code == 404
    assert Memory.objects.get(instance=support).content == "Original"
