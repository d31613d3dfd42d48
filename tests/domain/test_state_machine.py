"""Random sequences of steps: a key is taken only once, no text is lost, left behind or leaked.

A model in plain Python keeps what everybody may see. After every step it is compared with the database.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from accounts.access import Actor, Scope, actor_of_key, actor_of_user, open_instance
from accounts.models import ApiKey, Membership, User
from instances.models import Instance
from memories.attachments import attach
from memories.deletion import delete_memory, purge_expired
from memories.draft import MemoryChanges, MemoryDraft
from memories.embedding.backfill import embed_pending
from memories.filters import Filters
from memories.listing import count, list_from
from memories.models import Attachment, Chunk, Embedding, Memory, MemoryVersion
from memories.review.inbox import approve
from memories.review.merging import merge
from memories.search.hybrid import search
from memories.search.sharing import find_own_or_shared
from memories.search.similar import similar
from memories.store import change, find_memory, restore, save
from memoryconsole.errors import Conflict, Invalid, NotFound, Problem
from memoryconsole.inputs import read
from tests.domain.known import PLACES, Known, Permissions
from tests.factories import make_instance, make_key, make_user, scope_of

pytestmark = pytest.mark.django_db

PEOPLE = ("root", "ada", "bob", "key")
SAYING = "fox"
FARTHER = ("private", "instance", "team", "org")
TEXTS = tuple(f"The fox {rest}" for rest in ("drinks oolong", "collects marbles", "paints a lighthouse", "is asleep"))
# The same steps in every run, without shrinking them after a failure, which would take minutes.
BOUNDS = hypothesis_settings(
    max_examples=12,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

# Those with more permissions, and instances with more memories, are drawn more often.
who = st.sampled_from([*PEOPLE, "root", "key", "root"])
place = st.sampled_from(["sales", "sales", *PLACES])
pick = st.integers(0, 11)
text = st.sampled_from(TEXTS)
category = st.sampled_from(["general", "fact"])
key = st.sampled_from(["", "drink", "hobby"])
owner = st.sampled_from(["", "ada", "bob"])
visibility = st.sampled_from(["private", "instance", "team", "org"])
dedupe = st.sampled_from(["update", "create", "reject"])


def expecting(problem: type[Problem] | None) -> AbstractContextManager[Any]:
    return pytest.raises(problem) if problem else nullcontext()


class Remembering(RuleBasedStateMachine):
    memories: Bundle[Known] = Bundle("memories")

    def __init__(self) -> None:
        super().__init__()
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        self.known: list[Known] = []
        # The memories that the last step changed, and the people whose view it may have changed.
        self.touched: list[Known] = []
        self.concerned: tuple[str, ...] = PEOPLE
        self.may = Permissions()
        self.instances = {
            slug: make_instance(slug, team=team, organisation=organisation, embedder="offline")
            for slug, (team, organisation) in PLACES.items()
        }
        self.actors = self._people()

    def _people(self) -> dict[str, Actor]:
        users = [make_user("root", superadmin=True), make_user("ada"), make_user("bob")]
        make_key(self.instances["sales"])
        for (name, slug), grants in self.may.granted.items():
            if name != "key":
                self._join(User.objects.get(username=name), self.instances[slug], *grants)
        return {user.username: actor_of_user(user) for user in users} | {"key": actor_of_key(ApiKey.objects.get())}

    def _join(self, user: User, instance: Instance, team: bool, org: bool) -> None:
        grants = {"read_team": team, "read_org": org}
        Membership.objects.update_or_create(user=user, instance=instance, defaults=grants)

    def teardown(self) -> None:
        try:
            self.touched, self.concerned = self.known, PEOPLE
            self.everybody_sees_what_they_may()
        finally:
            transaction.set_rollback(True)
            self.transaction.__exit__(None, None, None)

    def scope(self, name: str, place: str) -> Scope | None:
        """The scope of this person; None if they may not open the instance, which is checked as well."""
        with expecting(None if self.may.opens(name, place) else NotFound):
            return open_instance(self.actors[name], place)
        return None

    def scopes(self) -> Iterator[tuple[str, str, Scope]]:
        for name in self.concerned:
            for slug in PLACES:
                if scope := self.scope(name, slug):
                    yield name, slug, scope

    def change(self, name: str, memory: Known, write: Callable[[Scope], object], wrong: type[Problem] | None) -> bool:
        """Whether this person can find the memory; one that they may not read does not exist for them."""
        scope = self.scope(name, memory.place)
        if scope is None:
            return False
        refused = wrong if self.may.reads(name, memory) else NotFound
        with expecting(refused), transaction.atomic():
            write(scope)
        self.touched = [] if refused else [memory]
        return refused is None

    def holder(self, place: str, owner: str, key: str) -> Known | None:
        held = (each for each in self.known if (each.place, each.owner, each.key) == (place, owner, key))
        return next((each for each in held if key and each.is_there and each.active), None)

    @initialize(target=memories)
    def begin(self) -> MultipleResults[Known]:
        shared = [self._saved("root", slug, TEXTS[0], "general", "hobby", "", "org", "update") for slug in PLACES]
        own = self._saved("root", "sales", TEXTS[1], "fact", "drink", "ada", "private", "update")
        team = self._saved("key", "sales", TEXTS[2], "fact", "drink", "", "team", "update")
        began = [each for each in [*shared, own, team] if each]
        for each in began:
            self.edit("root", each, TEXTS[3], "general")
        return multiple(*began)

    @rule(
        target=memories,
        name=who,
        place=place,
        text=text,
        category=category,
        key=key,
        owner=owner,
        visibility=visibility,
        dedupe=dedupe,
    )
    def save(
        self, name: str, place: str, text: str, category: str, key: str, owner: str, visibility: str, dedupe: str
    ) -> MultipleResults[Known]:
        if visibility == "private" and not owner:
            visibility = "instance"
        created = self._saved(name, place, text, category, key, owner, visibility, dedupe)
        return multiple(created) if created else multiple()

    @rule(target=memories, name=who, memory=memories, text=text, dedupe=dedupe, visibility=visibility)
    def save_again(self, name: str, memory: Known, text: str, dedupe: str, visibility: str) -> MultipleResults[Known]:
        """Save under the same key: the memory is superseded or updated, or it is refused."""
        return self.save(name, memory.place, text, "general", memory.key, memory.owner, visibility, dedupe)

    def _saved(
        self, name: str, place: str, text: str, category: str, key: str, owner: str, visibility: str, dedupe: str
    ) -> Known | None:
        scope = self.scope(name, place)
        if scope is None:
            return None
        sent = {"content": text, "category": category, "key": key, "owner": owner, "visibility": visibility}
        draft = read(MemoryDraft, {**sent, "dedupe": dedupe})
        holder = self.holder(place, owner, key)
        if holder and (dedupe == "reject" or not self.may.reads(name, holder)):
            with pytest.raises(Conflict) as conflict:
                save(scope, draft)
            assert ("memory" in conflict.value.extra) == self.may.reads(name, holder)
            return None
        saved = save(scope, draft)
        assert (saved.event == "updated") == (holder is not None and dedupe == "update")
        if holder and dedupe == "update":
            assert saved.memory.id == holder.id
            holder.say(text, category)
            holder.visibility = visibility
            self.touched = [holder]
            return None
        if holder:
            holder.active = False
        new = Known(saved.memory.id, place, owner, key, visibility, [(text, category)])
        self.known.append(new)
        self.touched = [new, *([holder] if holder else [])]
        return new

    @rule(name=who, memory=memories, text=text, category=category)
    def edit(self, name: str, memory: Known, text: str, category: str) -> None:
        changes = read(MemoryChanges, {"content": text, "category": category})
        if self.change(name, memory, lambda scope: change(scope, memory.id, changes), None):
            memory.say(text, category)

    @rule(name=who, memory=memories, key=key)
    def rename(self, name: str, memory: Known, key: str) -> None:
        changes = read(MemoryChanges, {"key": key})
        taken = self._is_taken(memory, memory.owner, key)
        if self.change(name, memory, lambda scope: change(scope, memory.id, changes), Conflict if taken else None):
            memory.key = key

    @rule(name=who, memory=memories, visibility=visibility, owner=owner)
    def share(self, name: str, memory: Known, visibility: str, owner: str) -> None:
        changes = read(MemoryChanges, {"visibility": visibility, "owner": owner})
        wrong: type[Problem] | None = Conflict if self._is_taken(memory, owner, memory.key) else None
        if visibility == "private" and not owner:
            wrong = Invalid
        if self.change(name, memory, lambda scope: change(scope, memory.id, changes), wrong):
            memory.visibility, memory.owner = visibility, owner

    def _is_taken(self, memory: Known, owner: str, key: str) -> bool:
        return memory.active and self.holder(memory.place, owner, key) not in (None, memory)

    @rule(name=who, memory=memories, pick=pick)
    def restore(self, name: str, memory: Known, pick: int) -> None:
        number = 1 + pick % len(memory.said)
        wrong: type[Problem] | None = None if number < len(memory.said) else NotFound
        if self.change(name, memory, lambda scope: restore(scope, memory.id, number), wrong):
            memory.say(*memory.said[number - 1])
            self._is_used_again(memory)

    @rule(name=who, memory=memories)
    def use_again(self, name: str, memory: Known) -> None:
        wrong: type[Problem] | None = Invalid if memory.active else None
        if self.change(name, memory, lambda scope: restore(scope, memory.id), wrong):
            self._is_used_again(memory)

    def _is_used_again(self, memory: Known) -> None:
        """The memory loses its key if another one has it now."""
        if self.holder(memory.place, memory.owner, memory.key) not in (None, memory):
            memory.key = ""
        memory.active = True

    @rule(name=who, memory=memories, pick=pick, text=text)
    def merge(self, name: str, memory: Known, pick: int, text: str) -> None:
        mixable = [each for each in self.known if each.place == memory.place and self._are_mixable(memory, each)]
        others = mixable if mixable and pick % 4 else self.known
        other = others[pick % len(others)]
        wrong: type[Problem] | None = None if self._are_mixable(memory, other) else Conflict
        if other.place != memory.place or not self.may.reads(name, other):
            wrong = NotFound
        if self.change(name, memory, lambda scope: merge(scope, memory.id, other.id, text), wrong):
            memory.say(text, memory.said[-1][1])
            memory.key = memory.key or other.key
            memory.visibility = min(memory.visibility, other.visibility, key=FARTHER.index)
            other.active, other.deleted = False, other.waiting
            self.touched = [memory, other]

    def _are_mixable(self, memory: Known, other: Known) -> bool:
        is_alike = (memory.visibility == "private") == (other.visibility == "private")
        return memory is not other and memory.active and other.active and memory.owner == other.owner and is_alike

    @rule(name=who, memory=memories)
    def delete(self, name: str, memory: Known) -> None:
        if self.change(name, memory, lambda scope: delete_memory(scope, memory.id), None):
            memory.deleted = True

    @rule(name=who, memory=memories)
    def attach(self, name: str, memory: Known) -> None:
        self.change(name, memory, lambda scope: attach(scope, memory.id, io.BytesIO(b"Hello"), name="a.txt"), None)

    @rule(memory=memories)
    def expire(self, memory: Known) -> None:
        Memory.objects.filter(id=memory.id).update(expires_at=timezone.now())
        memory.expired = True
        self.touched = [memory]

    @rule()
    def let_the_worker_work(self) -> None:
        for slug, instance in self.instances.items():
            gone = [each for each in self.known if each.place == slug and each.expired and not each.deleted]
            assert purge_expired(scope_of(instance)).deleted == len(gone)
            embed_pending(scope_of(instance))
            self.touched += gone
            for each in gone:
                each.deleted = True

    @rule(memory=memories)
    def doubt(self, memory: Known) -> None:
        """As extraction leaves it if a person has to review it."""
        if memory.active:
            Memory.objects.filter(id=memory.id).update(review="pending")
            memory.waiting = True
            self.touched = [memory]

    @rule(name=who, memory=memories)
    def approve(self, name: str, memory: Known) -> None:
        wrong = None if memory.active and memory.waiting else Conflict
        if self.change(name, memory, lambda scope: approve(scope, memory.id), wrong):
            memory.waiting = False

    @rule(name=st.sampled_from(["ada", "bob"]), place=place, team=st.booleans(), org=st.booleans())
    def admit(self, name: str, place: str, team: bool, org: bool) -> None:
        self._join(User.objects.get(username=name), self.instances[place], team, org)
        self.may.granted[name, place] = (team, org)
        self.touched, self.concerned = self.known, (name,)

    @rule(name=st.sampled_from(["ada", "bob"]), place=place)
    def dismiss(self, name: str, place: str) -> None:
        Membership.objects.filter(user__username=name, instance=self.instances[place]).delete()
        self.may.granted.pop((name, place), None)
        self.touched, self.concerned = self.known, (name,)

    @rule(team=st.booleans(), org=st.booleans())
    def grant_the_key(self, team: bool, org: bool) -> None:
        ApiKey.objects.update(read_team=team, read_org=org)
        self.actors["key"] = actor_of_key(ApiKey.objects.get())
        self.may.granted["key", "sales"] = (team, org)
        self.touched, self.concerned = self.known, ("key",)

    @rule(name=who, place=place, mode=st.sampled_from(["keyword", "vector", "hybrid"]))
    def look_back(self, name: str, place: str, mode: Any) -> None:
        """By words or by meaning, also superseded memories and earlier texts."""
        scope = self.scope(name, place)
        if scope is not None:
            mine = {each.id for each in self.known if each.place == place and self.may.reads(name, each)}
            given = {each.id for each in self.known if self.may.is_given(name, place, each)}
            found = search(scope, TEXTS[0], Filters(include_superseded=True), mode=mode, limit=100)
            assert {hit.memory.id for hit in found.hits} <= mine | given

            listed = Counter(each.said[-1][1] for each in self.known if self.may.lists(name, place, each))
            assert +Counter(count(scope, Filters()).by_category) == listed

    @rule(
        name=who,
        place=place,
        word=st.sampled_from(["oolog", "marbels", "lighthuose", "hoby", "adda", "lighth", "thouse"]),
    )
    def misspell(self, name: str, place: str, word: str) -> None:
        """A suggestion comes from what the reader may read."""
        scope = self.scope(name, place)
        if scope is not None:
            mine = [each for each in self.known if each.place == place and self.may.reads(name, each)]
            meant = ", ".join(search(scope, word, Filters(), mode="keyword").corrected.values())
            known = {said for each in mine for said in each.words()}
            begun = {said[:length] + "…" for said in known for length in range(len(said))}
            assert {*meant.split(", ")} - {""} <= known | begun

    @invariant()
    def a_key_is_held_once(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT instance_id, owner, key FROM memories_memory WHERE status = 'active' AND key <> '' "
                "GROUP BY instance_id, owner, key HAVING count(*) > 1"
            )
            assert cursor.fetchall() == []

    @invariant()
    def no_text_is_lost(self) -> None:
        there = [each.id for each in self.known if not each.deleted]
        said: dict[UUID, list[tuple[str, str]]] = {id: [] for id in there}
        columns = ("content", "category")
        for id, *what in MemoryVersion.objects.order_by("number").values_list("memory_id", *columns):
            said[id].append((what[0], what[1]))
        for id, *what in Memory.objects.values_list("id", *columns):
            said[id].append((what[0], what[1]))
        assert said == {each.id: each.said for each in self.known if not each.deleted}

    @invariant()
    def nothing_is_left_of_what_was_deleted(self) -> None:
        gone = [each.id for each in self.known if each.deleted]
        if gone:
            assert not Memory.objects.filter(id__in=gone).exists()
            for part in (MemoryVersion, Chunk, Embedding, Attachment):
                assert not part._default_manager.filter(memory_id__in=gone).exists(), part

    @invariant()
    def everybody_sees_what_they_may(self) -> None:
        for name, slug, scope in self.scopes() if self.touched else ():
            self._check_lists(name, slug, scope)
            for memory in self.touched:
                self._check_doors(name, slug, scope, memory)
        self.touched, self.concerned = [], PEOPLE

    def _check_lists(self, name: str, slug: str, scope: Scope) -> None:
        own = {each.id for each in self.known if self.may.lists(name, slug, each)}
        seen = own | {each.id for each in self.known if self.may.is_given(name, slug, each)}
        listing = list_from(scope, Filters(), limit=100)
        assert ({memory.id for memory in listing.memories}, listing.total) == (own, len(own))
        found = search(scope, SAYING, Filters(), mode="keyword", limit=100)
        assert ({hit.memory.id for hit in found.hits}, found.total) == (seen, len(seen))

    def _check_doors(self, name: str, slug: str, scope: Scope, memory: Known) -> None:
        is_own = memory.place == slug and self.may.reads(name, memory)
        with expecting(None if is_own else NotFound):
            row = find_memory(scope, memory.id)
            listed = {each.id for each in self.known if self.may.lists(name, slug, each)}
            assert {near.id for near, _ in similar(scope, row, 100)} <= listed
        with expecting(None if is_own or self.may.is_given(name, slug, memory) else NotFound):
            assert find_own_or_shared(scope, memory.id)[1].slug == memory.place


@pytest.mark.usefixtures("storage")
def test_nothing_is_lost_left_or_leaked() -> None:
    run_state_machine_as_test(Remembering, settings=BOUNDS)
