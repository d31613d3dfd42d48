"""Search by meaning goes on without it when it has to; the order is the same every time, and explained."""

from typing import Any

import pytest

from instances.models import Instance
from memories.search import statement
from tests.domain.looking import MODES, embed, find, texts
from tests.factories import make_conversation, make_memories, make_memory
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("size")]


# By meaning


def test_meaning_is_found(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "The dog sleeps in the hall")
    make_memory(bot, "The invoice is overdue")
    embed(bot)
    results = find(bot, "puppy")
    assert (texts(results)[0], results.mode, results.reason) == ("The dog sleeps in the hall", "hybrid", "")
    assert results.hits[0].found.vector_rank == 1
    assert texts(find(bot, "puppy", mode="vector"))[0] == "The dog sleeps in the hall"
    assert find(bot, "puppy", mode="keyword").hits == []


def test_without_a_key_words_are_searched_and_it_is_said(bot: Instance) -> None:
    make_memory(bot, "Alice likes tea")
    results = find(bot, "tea")
    assert (texts(results), results.mode) == (["Alice likes tea"], "keyword")
    assert "No OpenAI or Azure key" in results.reason
    assert find(bot, "tea", mode="keyword").reason == ""
    nothing = find(bot, "tea", mode="vector")
    assert (nothing.hits, nothing.mode) == ([], "vector")
    assert nothing.reason == "No OpenAI or Azure key reaches this instance. So nothing was searched."


def test_before_the_first_vector_words_are_searched(bot: Instance, openai: OpenAIServer) -> None:
    make_memory(bot, "Alice likes tea")
    results = find(bot, "tea")
    assert (texts(results), results.mode) == (["Alice likes tea"], "keyword")
    assert "No memory has a vector yet" in results.reason


@pytest.mark.parametrize("fault", ["server_error", "unauthorized", "rate_limited", "reset", "nan", "wrong_dimensions"])
def test_when_the_api_fails_words_are_searched(bot: Instance, openai: OpenAIServer, fault: str) -> None:
    make_memory(bot, "Alice likes tea")
    embed(bot)
    openai.fail(fault)
    results = find(bot, "tea")
    assert (texts(results), results.mode) == (["Alice likes tea"], "keyword")
    assert results.reason.endswith("Search finds words but not meaning.")


def test_without_a_vector_no_vector_rank_is_made_up(bot: Instance) -> None:
    """NULL distances sort somewhere: with two rows both would be ranked, and hits would score twice."""
    make_memory(bot, "Alice likes tea")
    make_memory(bot, "Bob likes tea")
    results = find(bot, "tea")
    assert len(results.hits) == 2
    for hit in results.hits:
        assert (hit.found.vector_rank, hit.found.similarity, hit.found.vector_rrf) == (None, None, 0)


def test_paging_does_not_ask_for_the_vector_again(bot: Instance, openai: OpenAIServer) -> None:
    for n in range(4):
        make_memory(bot, f"The dog number {n}")
    embed(bot)
    before = len(openai.requests)
    for offset in range(4):
        find(bot, "puppy", limit=1, offset=offset)
    assert len(openai.requests) == before + 1


def test_many_chunks_of_one_memory_do_not_hide_other_memories(hashed: Instance) -> None:
    for n in range(6):
        make_memory(hashed, "\n\n".join(f"Tea {n} {m}. " + "Alice likes green tea. " * 40 for m in range(25)))
    make_memory(hashed, "Bob mentioned tea once, among a hundred other unrelated things of the day")
    embed(hashed)
    assert find(hashed, "Alice likes green tea", mode="vector").total == 7


@pytest.mark.parametrize(("others", "is_first"), [(50, True), (10, False)])
def test_what_a_hundred_have_in_common_counts_less(
    bot: Instance, openai: OpenAIServer, others: int, is_first: bool
) -> None:
    make_memory(bot, "Puppy kitten")
    for n in range(60):
        make_memory(bot, f"Trip alpha{n}")
    for n in range(others):
        make_memory(bot, f"Gamma{n} delta{n}")
    embed(bot)
    hits = find(bot, "hound journey travel", limit=100).hits
    puppy = next(hit.found for hit in hits if hit.memory.content == "Puppy kitten")
    assert puppy.vector_rank == 61, "the list itself is in the order of the cosine"
    assert (puppy.context_rank == 1) is is_first


# Order and explanation


def test_the_score_is_the_sum_of_its_parts(hashed: Instance) -> None:
    conversation = make_conversation(hashed)
    for n in range(15):
        make_memory(hashed, f"Alice likes tea number {n}", sourceConversationId=str(conversation.id))
    make_memory(hashed, "Bob likes coffee")
    embed(hashed)
    hits = find(hashed, "alice tea", limit=100).hits
    assert [hit.found.final for hit in hits] == sorted((hit.found.final for hit in hits), reverse=True)
    for found in (hit.found for hit in hits):
        ranks = (found.vector_rank, found.vector_rrf), (found.keyword_rank, found.keyword_rrf)
        for rank, rrf in ranks:
            within = rank is not None and rank <= statement.PLAIN_DEPTH
            assert rrf == pytest.approx(1 / (60 + rank) if rank and within else 0)
        assert found.context_rank is not None
        assert found.context_rrf == pytest.approx(statement.CONTEXT_WEIGHT / (60 + found.context_rank))
        assert found.final == pytest.approx(found.vector_rrf + found.keyword_rrf + found.context_rrf)
        assert found.total == len(hits)
    for ranks in zip(*[(h.found.vector_rank, h.found.keyword_rank, h.found.context_rank) for h in hits], strict=True):
        given_ranks = sorted(rank for rank in ranks if rank is not None)
        assert given_ranks == list(range(1, len(given_ranks) + 1)), "ranks have no gaps and no twins"


def test_the_order_is_always_the_same(hashed: Instance) -> None:
    make_memories(hashed, 5)
    twins = [make_memory(hashed, "Alice likes tea") for _ in range(6)]
    embed(hashed)
    orders = [[hit.memory.id for hit in find(hashed, "tea alice", mode=mode).hits] for mode in MODES for _ in range(2)]
    for one, again in zip(orders[::2], orders[1::2], strict=True):
        assert one == again
        assert one[:6] == [memory.id for memory in reversed(twins)], "of equals the newest comes first"


@pytest.mark.parametrize("mode", MODES)
def test_pages_have_no_twins_and_no_gaps(hashed: Instance, mode: Any) -> None:
    conversation = make_conversation(hashed)
    for n in range(23):
        where = {"sourceConversationId": str(conversation.id)} if n % 2 else {}
        make_memory(hashed, f"Alice likes tea {n}", importance=n % 10 + 1, **where)
    embed(hashed)
    whole = [hit.memory.id for hit in find(hashed, "alice tea", mode=mode, limit=100).hits]
    paged = [find(hashed, "alice tea", mode=mode, limit=5, offset=offset) for offset in range(0, 30, 5)]
    assert [hit.memory.id for page in paged for hit in page.hits] == whole
    assert len(set(whole)) == len(whole) == 23
    assert {page.total for page in paged} == {23}


def test_matched_words_are_told(bot: Instance) -> None:
    make_memory(bot, "Alice likes green tea")
    (hit,) = find(bot, "green coffee teas").hits
    assert sorted(hit.found.matched) == ["green", "tea"]
    assert hit.found.worded == 1


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_long_memory_shows_the_part_that_is_near(bot: Instance, openai: OpenAIServer, mode: Any) -> None:
    parts = [f"{subject} " * 300 for subject in ("The invoice is overdue.", "The dog sleeps.", "The train leaves.")]
    make_memory(bot, "\n\n".join(parts))
    embed(bot)
    [hit] = find(bot, "puppy", mode=mode).hits
    assert "dog" in (hit.found.content or "")
    assert "invoice" not in (hit.found.content or "")
