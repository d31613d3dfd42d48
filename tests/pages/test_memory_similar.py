"""Similar memories on GET /memory/<id>"""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.access import actor_of_user
from accounts.models import User
from instances.models import Instance
from memories.embedding.backfill import embed_pending, try_failed_again
from memories.models import Chunk, Memory
from memories.search.similar import similar
from tests.factories import make_memory, make_user, scope_of

pytestmark = pytest.mark.django_db


def embed(instance: Instance) -> None:
    embed_pending(scope_of(instance))
    instance.refresh_from_db()


def page(client: Client, memory: Memory) -> str:
    html = client.get(f"/memory/{memory.id}?instance=support-bot").content.decode()
    return html.split('<section class="panel" aria-labelledby="similar">')[1].split("</section>")[0]


def contents(found: list[tuple[Memory, float]]) -> list[str]:
    return [memory.content for memory, _ in found]


def test_the_nearest_come_first_with_their_cosine(alice: Client, offline: Instance) -> None:
    memory = make_memory(offline, "The Acme contract is renewed in May.")
    twin = make_memory(offline, "The Acme contract was renewed in May last year.")
    cousin = make_memory(offline, "The contract with Initech is renewed in June.")
    make_memory(offline, "Somebody wants a demo of new charts.")
    embed(offline)
    html = page(alice, memory)
    assert re.findall(r'<a class="memory-text"[^>]*>([^<]*)</a>', html) == [twin.content, cousin.content]
    assert f'href="/memory/{twin.id}?instance=support-bot"' in html
    first, second = map(float, re.findall(r'class="score"[^>]*>(-?\d\.\d{3})<', html))
    assert 1 > first > second


def test_the_best_pair_of_chunks_counts(offline: Instance) -> None:
    paragraphs = ["Padding about nothing at all. " * 48, "The Acme contract is renewed in May. " * 40]
    long = make_memory(offline, "\n\n".join(paragraphs))
    short = make_memory(offline, "The Acme contract is renewed in May.")
    embed(offline)
    assert Chunk.objects.filter(instance=offline, memory_id=long.id).count() > 1
    [(found, there)] = similar(scope_of(offline), short)
    [(found_back, back)] = similar(scope_of(offline), long)
    assert (found, found_back) == (long, short)
    assert there == pytest.approx(back)
    assert there > 0.9


def test_at_most_as_many_as_asked_for(offline: Instance) -> None:
    memory = make_memory(offline, "tables")
    for n in range(8):
        make_memory(offline, f"tables number {n}")
    embed(offline)
    assert len(similar(scope_of(offline), memory)) == 5
    assert len(similar(scope_of(offline), memory, 2)) == 2
    cosines = [cosine for _, cosine in similar(scope_of(offline), memory, 8)]
    assert cosines == sorted(cosines, reverse=True)


def test_only_what_the_reader_may_see_and_the_list_shows(offline: Instance) -> None:
    memory = make_memory(offline, "tables")
    make_memory(offline, "tables of bob", visibility="private", owner="bob")
    make_memory(offline, "tables of alice", visibility="private", owner="alice")
    gone = make_memory(offline, "tables of yesterday", expiresAt=(timezone.now() + timedelta(days=1)).isoformat())
    waiting = make_memory(offline, "tables to review")
    make_memory(offline, "tables before", key="k")
    make_memory(offline, "tables after", key="k")
    embed(offline)
    Memory.objects.filter(pk=gone.pk).update(expires_at=timezone.now())
    Memory.objects.filter(pk=waiting.pk).update(review="pending")
    everybody = {"tables of bob", "tables of alice", "tables after"}
    assert set(contents(similar(scope_of(offline), memory, 20))) == everybody
    alice = scope_of(offline, actor_of_user(make_user("alice", offline)))
    assert set(contents(similar(alice, memory, 20))) == everybody - {"tables of bob"}


def test_vectors_of_another_model_are_not_compared(offline: Instance) -> None:
    memory = make_memory(offline, "tables")
    make_memory(offline, "tables again")
    embed(offline)
    offline.embedding_generation += 1
    assert similar(scope_of(offline), memory) != []
    Instance.objects.filter(pk=offline.pk).update(embedding_generation=offline.embedding_generation)
    assert similar(scope_of(offline), memory) == []


def test_other_instances_are_not_looked_at(mallory: Client, offline: Instance, sales: Instance) -> None:
    Instance.objects.filter(pk=sales.pk).update(embedder="offline")
    sales.refresh_from_db()
    make_memory(sales, "tables of sales")
    memory = make_memory(offline, "tables of support")
    embed(offline)
    embed(sales)
    assert similar(scope_of(offline), memory) == []
    assert mallory.get(f"/memory/{memory.id}?instance=support-bot").status_code == 404
    assert mallory.get(f"/memory/{memory.id}?instance=sales-bot").status_code == 404


def test_it_says_why_there_are_none(alice: Client, support: Instance) -> None:
    memory = make_memory(support, "tables")
    assert similar(scope_of(support), memory) == []
    html = page(alice, memory)
    assert "No OpenAI or Azure key reaches this instance" in html
    assert 'href="/instances/support-bot/settings#openai-key"' in html
    Instance.objects.filter(pk=support.pk).update(embedder="offline")
    assert "It has no vector yet." in page(alice, memory)
    Memory.objects.filter(pk=memory.pk).update(embedding="failed", embedding_error="The <text> is too long.")
    assert "It has no vector to compare: The &lt;text&gt; is too long." in page(alice, memory)
    try_failed_again(scope_of(support))
    embed_pending(scope_of(support))
    assert "No other memory is similar to it." in page(alice, memory)


def test_content_is_escaped(alice: Client, offline: Instance) -> None:
    memory = make_memory(offline, "tables")
    make_memory(offline, "<script>alert(1)</script> tables")
    embed(offline)
    html = page(alice, memory)
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert User.objects.count() == 1
