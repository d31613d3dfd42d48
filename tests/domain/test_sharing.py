"""What instances share: found by search next door, labelled, and no more than that."""

from typing import Any

import pytest
from django.utils import timezone

from accounts.access import SHELL, Actor, actor_of_key, actor_of_user, open_instance
from accounts.models import ApiKey, Membership
from instances.models import Instance
from memories.embedding.backfill import embed_pending
from memories.filters import Filters
from memories.listing import count, list_from
from memories.models import Memory
from memories.recall.recalling import RecallRequest, recall
from memories.search.hybrid import Hit, search
from memories.search.sharing import find_own_or_shared, find_shared
from memories.store import find_memory
from memoryconsole.errors import NotFound
from memoryconsole.inputs import read
from tests.factories import make_instance, make_key, make_memory, make_user, scope_of
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def sales() -> Instance:
    return make_instance("sales-bot", team="front", organisation="acme", embedder="offline")


@pytest.fixture
def support() -> Instance:
    """In the same team."""
    return make_instance("support-bot", team="front", organisation="acme", embedder="offline")


@pytest.fixture
def billing() -> Instance:
    """In another team of the organisation."""
    return make_instance("billing-bot", team="back", organisation="acme", embedder="offline")


@pytest.fixture
def stranger() -> Instance:
    return make_instance("other-bot", team="front", organisation="rival", embedder="offline")


def key_of(instance: Instance, **grants: bool) -> Actor:
    prefix = make_key(instance, **grants).split("_")[1]
    return actor_of_key(ApiKey.objects.get(prefix=prefix))


def found(instance: Instance, text: str, actor: Actor = SHELL, **filters: Any) -> list[Hit]:
    return search(open_instance(actor, instance.slug), text, read(Filters, filters)).hits


def texts(hits: list[Hit]) -> set[str]:
    return {hit.memory.content for hit in hits}


@pytest.fixture
def shared(sales: Instance, support: Instance, billing: Instance, stranger: Instance) -> dict[str, Memory]:
    said = {
        name: make_memory(instance, f"Refunds of {instance.slug} for {visibility}", visibility=visibility)
        for instance in (support, billing, stranger)
        for visibility in ("instance", "team", "org")
        for name in [f"{instance.slug} {visibility}"]
    }
    for instance in (support, billing, stranger):
        embed_pending(scope_of(instance))
    return said


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ({}, set()),
        ({"read_team": True}, {"support-bot team", "support-bot org"}),
        ({"read_org": True}, {"support-bot org", "billing-bot org"}),
        ({"read_team": True, "read_org": True}, {"support-bot team", "support-bot org", "billing-bot org"}),
    ],
)
def test_what_is_found_depends_on_what_was_granted(
    sales: Instance, shared: dict[str, Memory], grants: dict[str, bool], expected: set[str]
) -> None:
    hits = found(sales, "refunds", key_of(sales, **grants))
    assert texts(hits) == {shared[name].content for name in expected}
    member = make_user("alice", sales)
    Membership.objects.filter(user=member).update(**grants)
    assert texts(found(sales, "refunds", actor_of_user(member))) == texts(hits)
    for hit in hits:
        assert hit.origin is not None
        assert hit.memory.instance_id == hit.origin.id != sales.id


def test_superadmins_and_the_shell_read_what_the_organisation_shares(
    sales: Instance, shared: dict[str, Memory]
) -> None:
    everything = {"support-bot team", "support-bot org", "billing-bot org"}
    root = actor_of_user(make_user("root", superadmin=True))
    assert texts(found(sales, "refunds", root)) == {shared[name].content for name in everything}
    assert texts(found(sales, "refunds")) == {shared[name].content for name in everything}


def test_a_job_works_on_its_own_instance_alone(sales: Instance, shared: dict[str, Memory]) -> None:
    assert found(sales, "refunds", Actor(kind="job", name="extract", all_instances=True)) == []


def test_shared_memories_are_in_no_list_count_or_change(sales: Instance, shared: dict[str, Memory]) -> None:
    scope = scope_of(sales)
    make_memory(sales, "Our own")
    assert [memory.content for memory in list_from(scope, Filters(), limit=100).memories] == ["Our own"]
    assert count(scope, Filters()).all == 1
    with pytest.raises(NotFound):
        find_memory(scope, shared["support-bot team"].id)


def test_one_can_be_read_by_its_id(sales: Instance, support: Instance, shared: dict[str, Memory]) -> None:
    memory, origin = find_own_or_shared(scope_of(sales), shared["support-bot team"].id)
    assert (memory, origin) == (shared["support-bot team"], support)
    own = make_memory(sales, "Our own")
    assert find_own_or_shared(scope_of(sales), own.id) == (own, sales)
    for hidden in ("support-bot instance", "billing-bot team", "other-bot org"):
        with pytest.raises(NotFound):
            find_shared(scope_of(sales), shared[hidden].id)


def test_a_private_memory_is_not_shared_by_anybody(sales: Instance, support: Instance) -> None:
    make_memory(support, "Refunds of Ada", visibility="private", owner="ada")
    assert found(sales, "refunds") == []


def test_what_is_expired_superseded_or_waits_for_review_is_not_shared(sales: Instance, support: Instance) -> None:
    rows = [make_memory(support, f"Refund {n}", visibility="team") for n in range(4)]
    Memory.objects.filter(id=rows[0].id).update(expires_at=timezone.now())
    Memory.objects.filter(id=rows[1].id).update(status="superseded")
    Memory.objects.filter(id=rows[2].id).update(review="pending")
    assert texts(found(sales, "refund")) == {"Refund 3"}


def test_what_an_instance_shares_it_finds_once_and_as_its_own(sales: Instance, support: Instance) -> None:
    make_memory(sales, "The printer is on floor 2", visibility="team")
    make_memory(support, "The printer is out of toner", visibility="team")
    hits = sorted((hit.memory.content, hit.origin) for hit in found(sales, "printer"))
    assert hits == [("The printer is on floor 2", None), ("The printer is out of toner", support)]


def test_filters_narrow_them_too(sales: Instance, support: Instance) -> None:
    make_memory(support, "Refunds are a fact", visibility="team", category="fact")
    make_memory(support, "Refunds are an event", visibility="team", category="event")
    assert texts(found(sales, "refunds", category="fact")) == {"Refunds are a fact"}
    assert found(sales, "refunds", visibility="instance") == []


def test_they_stand_where_words_and_meaning_put_them(sales: Instance, support: Instance) -> None:
    make_memory(sales, "Green tea is served in the kitchen")
    make_memory(sales, "Refund policy, draft")
    make_memory(support, "The refund policy allows thirty days", visibility="team")
    make_memory(support, "The kitchen closes early", visibility="team")
    for instance in (sales, support):
        embed_pending(scope_of(instance))
    order = [hit.memory.content for hit in found(sales, "refund policy thirty days")]
    assert order[:2] == ["The refund policy allows thirty days", "Refund policy, draft"]
    assert "The kitchen closes early" not in order, "no word of it and not near"
    scores = [hit.found.final for hit in found(sales, "refund policy thirty days")]
    assert scores == sorted(scores, reverse=True)


def test_pages_neither_repeat_nor_lose_any(sales: Instance, support: Instance) -> None:
    for n in range(7):
        make_memory(sales, f"Own refund number {n}")
        make_memory(support, f"Shared refund number {n}", visibility="team")
    scope = scope_of(sales)
    pages = [search(scope, "refund", Filters(), limit=4, offset=offset) for offset in (0, 4, 8, 12)]
    assert [page.total for page in pages] == [14] * 4
    ids = [hit.memory.id for page in pages for hit in page.hits]
    assert len(ids) == len(set(ids)) == 14


def test_the_end_of_a_page_does_not_move_them(openai: OpenAIServer) -> None:
    own, other = (make_instance(slug, team="front", organisation="acme") for slug in ("a-bot", "b-bot"))
    for content in ("Trip toner lunch", "Car lunch garage cat holiday", "Puppy", "Lunch invoice toner dog window"):
        make_memory(own, content)
    make_memory(other, "Toner price cat dinner", visibility="team")
    for instance in (own, other):
        embed_pending(scope_of(instance))
    # "cat" is the rarer word, but the memory that contains it is not the first hit.
    whole = [hit.memory.content for hit in found(own, "cat toner")]
    pages = [search(scope_of(own), "cat toner", Filters(), limit=1, offset=offset).hits for offset in range(5)]
    assert [hit.memory.content for page in pages for hit in page] == whole


def test_vectors_of_another_model_are_not_compared(sales: Instance, support: Instance) -> None:
    make_memory(sales, "Something of our own")
    make_memory(support, "Greenish beverages", visibility="team")
    for instance in (sales, support):
        embed_pending(scope_of(instance))
    assert [hit.memory.content for hit in found(sales, "greenish beverage") if hit.origin] == ["Greenish beverages"]
    Instance.objects.filter(id=support.id).update(embedding_model="text-embedding-3-small")
    (hit,) = [hit for hit in found(sales, "greenish beverage") if hit.origin]
    assert hit.found.similarity is None, "found by its words alone"


def test_an_instance_without_memories_of_its_own_finds_them_by_meaning_too(openai: OpenAIServer) -> None:
    newcomer, other = (make_instance(slug, team="front", organisation="acme") for slug in ("a-bot", "b-bot"))
    make_memory(other, "The dog sleeps", visibility="team")
    make_memory(other, "The invoice is overdue", visibility="team")
    embed_pending(scope_of(other))
    results = search(scope_of(newcomer), "puppy", Filters())
    assert (results.mode, results.reason) == ("hybrid", "")
    assert [hit.memory.content for hit in results.hits] == ["The dog sleeps"]
    recalled = recall(scope_of(newcomer), read(RecallRequest, {"query": "puppy"}))
    assert [given.memory.content for given in recalled.memories] == ["The dog sleeps"]


def test_a_long_memory_of_others_shows_the_part_that_is_near(openai: OpenAIServer) -> None:
    own, other = (make_instance(slug, team="front", organisation="acme") for slug in ("a-bot", "b-bot"))
    make_memory(own, "The train leaves")
    parts = [f"{said} " * 300 for said in ("The invoice is overdue.", "The dog sleeps.", "The car is blue.")]
    make_memory(other, "\n\n".join(parts), visibility="team")
    for instance in (own, other):
        embed_pending(scope_of(instance))
    [content] = [hit.found.content or "" for hit in found(own, "puppy") if hit.origin == other]
    assert "dog" in content
    assert "invoice" not in content
