"""From the moment it expires, a memory cannot be read anywhere, and it is purged soon after."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.access import actor_of_user
from accounts.models import User
from conversations.listing import memories_from, memories_per_conversation
from instances.listing import list_instances
from instances.models import Instance
from memories.changing_many import change_many
from memories.deletion import delete_memory
from memories.draft import MemoryChanges, MemoryDraft
from memories.embedding.backfill import embed_pending
from memories.filters import Filters
from memories.jobs import purge_all_expired
from memories.listing import count, ids_matching, list_from, list_page, pinned_on_top
from memories.models import Memory
from memories.recall.recalling import RecallRequest, recall
from memories.search.hybrid import search
from memories.search.similar import similar
from memories.store import change, find_memory, restore, save, save_many
from memories.tags import known_tags
from memoryconsole.errors import NotFound
from tests.factories import make_conversation, make_instance, make_memory, make_user, scope_of

pytestmark = pytest.mark.django_db

MARK = "qzvxkwb"


class World:
    """An instance with one memory that expires and one that does not."""

    def __init__(self) -> None:
        self.bot: Instance = make_instance("support-bot", embedder="offline")
        self.talk = make_conversation(self.bot, "Hello")
        link = {"sourceConversationId": str(self.talk.id)}
        self.other = make_memory(self.bot, "The weather is fine")
        self.memory = make_memory(self.bot, f"It says {MARK}", key="k", tags=[MARK], pinned=True, **link)
        change(self.scope, self.memory.id, MemoryChanges(content=f"It still says {MARK}"))
        embed_pending(self.scope)
        self.bot.refresh_from_db()
        self.recalled = recall(self.scope, RecallRequest(query="What is new?")).id
        self.user: User = make_user("alice", self.bot)
        self.client = Client()
        self.client.force_login(self.user, backend="django.contrib.auth.backends.ModelBackend")

    @property
    def scope(self) -> Any:
        return scope_of(self.bot)

    def expire(self) -> None:
        Memory.objects.filter(pk=self.memory.pk).update(expires_at=timezone.now() - timedelta(hours=1))

    def found(self, act: Callable[[], object]) -> object:
        try:
            return act()
        except NotFound:
            return None

    def get(self, path: str) -> str:
        response = self.client.get(f"{path}{'&' if '?' in path else '?'}instance=support-bot")
        text: str = response.content.decode()
        return text if response.status_code == 200 else ""

    def api(self, path: str) -> str:
        response = self.client.get(f"/api/v1{path}{'&' if '?' in path else '?'}instanceId=support-bot")
        text: str = response.content.decode()
        return text if response.status_code == 200 else ""


def hits(world: World, filters: Filters) -> list[Memory]:
    return [hit.memory for hit in search(world.scope, MARK, filters).hits]


NO = Filters()
READS: dict[str, Callable[[World], object]] = {
    "by id": lambda w: w.found(lambda: find_memory(w.scope, w.memory.id)),
    "list": lambda w: len(list_from(w.scope, NO, limit=9).memories) == 2,
    "total of the list": lambda w: list_from(w.scope, NO, limit=9).total == 2,
    "page": lambda w: len(list_page(w.scope, NO, number=1, size=25, total=2).rows) == 2,
    "pinned on top": lambda w: pinned_on_top(w.scope, NO),
    "counters": lambda w: count(w.scope, NO).all == 2,
    "counted rows": lambda w: count(w.scope, Filters(pinned=True)).all,
    "ids": lambda w: len(ids_matching(w.scope, NO)) == 2,
    "search by words": lambda w: search(w.scope, MARK, NO, mode="keyword").hits,
    "total of a search": lambda w: search(w.scope, MARK, NO, mode="keyword").total,
    "search by words, filtered": lambda w: search(w.scope, MARK, Filters(pinned=True), mode="keyword").total,
    "search by meaning": lambda w: len(search(w.scope, MARK, NO, mode="vector").hits) == 2,
    "search in earlier texts": lambda w: w.memory in hits(w, Filters(include_superseded=True)),
    "similar ones of another": lambda w: similar(w.scope, w.other),
    "its own similar ones": lambda w: w.api(f"/memories/{w.memory.id}/similar"),
    "history": lambda w: MARK in w.api(f"/memories/{w.memory.id}/history"),
    "tags": lambda w: known_tags(w.scope),
    "conversation": lambda w: memories_from(w.scope, w.talk),
    "number of a conversation": lambda w: memories_per_conversation(w.scope, [w.talk]),
    "number of an instance": lambda w: list_instances(actor_of_user(w.user))[0].memories == 2,
    "GET /memories": lambda w: MARK in w.api("/memories"),
    "GET /memories?search": lambda w: MARK in w.api(f"/memories?search={MARK}"),
    "GET /memories/<id>": lambda w: MARK in w.api(f"/memories/{w.memory.id}"),
    "GET /tags": lambda w: MARK in w.api("/tags"),
    "GET /recalls/<id>": lambda w: MARK in w.api(f"/recalls/{w.recalled}"),
    "GET /recalls/<id>/why": lambda w: MARK in w.api(f"/recalls/{w.recalled}/why?memoryId={w.memory.id}"),
    "/memory": lambda w: MARK in w.get("/memory"),
    "/memory, searched": lambda w: f"<mark>{MARK}</mark>" in w.get(f"/memory?search={MARK}"),
    "/memory/<id>": lambda w: MARK in w.get(f"/memory/{w.memory.id}"),
    "/memory/<id>/edit": lambda w: MARK in w.get(f"/memory/{w.memory.id}/edit"),
    "/memory/<id>/delete": lambda w: MARK in w.get(f"/memory/{w.memory.id}/delete"),
    "/memory/new": lambda w: MARK in w.get("/memory/new"),
    "/recall": lambda w: MARK in w.get(f"/recall?query=news&memory={w.memory.id}"),
    "/recall/<id>": lambda w: MARK in w.get(f"/recall/{w.recalled}"),
    "/recall/<id>, why": lambda w: MARK in w.get(f"/recall/{w.recalled}?memory={w.memory.id}"),
    "/conversations/<id>": lambda w: MARK in w.get(f"/conversations/{w.talk.id}"),
}  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_every_read(read: str) -> None:
    world = World()
    assert READS[read](world), "it can be read before"
    world.expire()
    assert not READS[read](world)


WRITES: dict[str, Callable[[World], object]] = {
    "change": lambda w: change(w.scope, w.memory.id, MemoryChanges(pinned=False)),
    "restore": lambda w: restore(w.scope, w.memory.id, 1),
    "delete": lambda w: delete_memory(w.scope, w.memory.id),
    "change in bulk": lambda w: change_many(w.scope, [w.memory.id], {"pinned": False}),
}


@pytest.mark.parametrize("write", WRITES)
def test_no_write_reaches_it(write: str) -> None:
    world = World()
    world.expire()
    assert not world.found(lambda: WRITES[write](world))
    assert Memory.objects.get(pk=world.memory.pk).pinned


SAVES: dict[str, Callable[[World], Memory]] = {
    "save": lambda w: save(w.scope, MemoryDraft(content="New", key="k", dedupe="reject")).memory,
    "save, update": lambda w: save(w.scope, MemoryDraft(content="New", key="k")).memory,
    "save in bulk": lambda w: save_many(w.scope, [MemoryDraft(content="New", key="k")])[0].memory,
    "change": lambda w: change(w.scope, w.other.id, MemoryChanges(content="New", key="k")),
}


@pytest.mark.parametrize("way", SAVES)
def test_its_key_is_free_at_once(way: str) -> None:
    world = World()
    world.expire()
    memory = SAVES[way](world)
    assert memory.id != world.memory.id
    assert (find_memory(world.scope, memory.id).content, memory.key) == ("New", "k")
    purge_all_expired(timestamp=0)
    assert not Memory.objects.filter(pk=world.memory.pk).exists()
    assert find_memory(world.scope, memory.id)


def test_a_key_of_the_same_name_elsewhere_is_not_touched() -> None:
    world, other = World(), make_instance()
    theirs = make_memory(other, key="k", expiresAt="2020-01-01T00:00:00Z")
    world.expire()
    SAVES["save"](world)
    assert Memory.objects.get(pk=theirs.pk).key == "k"


def test_its_key_is_free_for_what_comes_to_its_owner() -> None:
    bot = make_instance()
    other = make_memory(bot, key="k", owner="bob")
    make_memory(bot, key="k", owner="ada", expiresAt="2020-01-01T00:00:00Z")
    moved = change(scope_of(bot), other.id, MemoryChanges(owner="ada"))
    assert (moved.owner, moved.key) == ("ada", "k")
