"""GET /api/v1/memories/{id}/similar"""

import pytest

from memories.embedding.backfill import embed_pending
from tests.api.calling import Caller
from tests.factories import make_instance, make_key, make_memory, scope_of

pytestmark = pytest.mark.django_db


def test_the_nearest_come_first_with_their_cosine() -> None:
    bot = make_instance("offline-bot", embedder="offline")
    tea = make_memory(bot, "Alice drinks green tea in the morning")
    near = make_memory(bot, "Alice drinks black tea in the evening")
    make_memory(bot, "The invoice goes to Berlin")
    embed_pending(scope_of(bot))
    api = Caller(make_key(bot))
    answer = api.get(f"/api/v1/memories/{tea.id}/similar?instanceId=offline-bot")
    found = answer.json["memories"]
    assert found[0]["content"] == near.content
    assert 0.3 < found[0]["similarity"] <= 1
    assert [memory["similarity"] for memory in found] == sorted((m["similarity"] for m in found), reverse=True)
    assert tea.content not in [memory["content"] for memory in found]
    assert len(api.get(f"/api/v1/memories/{tea.id}/similar?instanceId=offline-bot&limit=1").json["memories"]) == 1


def test_without_a_vector_there_is_nothing_similar() -> None:
    bot = make_instance("keyless-bot")
    memory = make_memory(bot, "Alone")
    answer = Caller(make_key(bot)).get(f"/api/v1/memories/{memory.id}/similar?instanceId=keyless-bot")
    assert (answer.status, answer.json) == (200, {"memories": []})


def test_bad_input() -> None:
    bot = make_instance("some-bot")
    memory = make_memory(bot)
    api = Caller(make_key(bot))
    assert api.get(f"/api/v1/memories/{memory.id}/similar?instanceId=some-bot&limit=0").error == (400, "invalid")
    assert api.get("/api/v1/memories/nonsense/similar?instanceId=some-bot").error == (404, "not_found")
