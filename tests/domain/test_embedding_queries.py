"""The vector of a question: asked for once, and not at all for a while when nobody answers."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from memories import breaker
from memories.embedding import embedder
from memories.embedding.embedder import DIMENSIONS, embed_query
from tests.domain.asking import OTHER_KEY, bot, query_code, reason_of
from tests.openai_server import GOOD_KEY, OpenAIServer


def test_a_query_is_embedded_once(openai: OpenAIServer, settings: Any) -> None:
    first = embed_query(bot(), "green tea")
    assert embed_query(bot(), "green tea") == first
    assert embed_query(bot(openai_key=OTHER_KEY), "green tea") == first
    assert openai.embedded() == ["green tea"]

    settings.EMBEDDING_MODEL = "text-embedding-ada-002"
    embed_query(bot(), "green tea")
    assert openai.embedded() == ["green tea"] * 2


def test_nobody_can_spoil_a_cached_vector(openai: OpenAIServer) -> None:
    embed_query(bot(), "tea").clear()
    embed_query(bot(), "tea").clear()
    assert len(embed_query(bot(), "tea")) == DIMENSIONS


def test_only_the_last_queries_are_remembered(openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "CACHED_QUERIES", 2)
    for text in ("one", "two", "one", "three", "one", "two"):
        embed_query(bot(), text)
    assert openai.embedded() == ["one", "two", "three", "two"]


def test_a_new_key_gets_a_new_client(openai: OpenAIServer) -> None:
    assert query_code("one", openai_key="sk-wrong-0123456789") == "unauthorized"
    embed_query(bot(openai_key=OTHER_KEY), "two")
    embed_query(bot(openai_key=GOOD_KEY), "three")
    assert [request.key for request in openai.requests] == ["sk-wrong-0123456789", OTHER_KEY, GOOD_KEY]


def test_many_can_search_at_once(openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "QUERY_SECONDS", 60)
    openai.meanwhile(Barrier(16, timeout=50).wait, times=16)  # none is answered before all are asked
    with ThreadPoolExecutor(16) as pool:
        vectors = list(pool.map(lambda number: embed_query(bot(), f"query {number}"), range(16)))
    assert sorted(openai.embedded()) == sorted(f"query {number}" for number in range(16))
    assert vectors == [embed_query(bot(), f"query {number}") for number in range(16)]


def test_three_failures_stop_the_asking_and_one_trial_starts_it_again(
    openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(breaker, "OPEN_SECONDS", 0.3)
    embed_query(bot(), "remembered")
    openai.fail("server_error")
    assert [query_code() for _ in range(5)] == ["server_error"] * 3 + ["breaker_open"] * 2
    problem = reason_of(lambda: embed_query(bot(), "tea"))
    assert problem.reason == "The embeddings API failed with status 500."
    assert problem.retry_after is not None
    assert 0 < problem.retry_after <= 0.3
    assert len(openai.requests) == 1 + 3 * 2
    assert len(embed_query(bot(), "remembered")) == DIMENSIONS

    time.sleep(0.31)
    assert [query_code() for _ in range(2)] == ["server_error", "breaker_open"]
    openai.recover()
    time.sleep(0.31)
    for text in ("tea", "coffee"):
        assert len(embed_query(bot(), text)) == DIMENSIONS
    openai.fail("server_error")
    assert query_code("milk") == "server_error"
    assert caplog.text.count("Searches do without vectors") == 1


def test_success_in_between_starts_the_count_anew(openai: OpenAIServer) -> None:
    for number in range(4):
        openai.fail("rate_limited", times=2)
        assert [query_code(), query_code()] == ["rate_limited"] * 2
        embed_query(bot(), f"works {number}")


def test_what_is_refused_stops_nobody_from_asking_something_else(openai: OpenAIServer) -> None:
    openai.fail("refused", times=4)
    assert [query_code() for _ in range(4)] == ["refused"] * 4
    assert len(embed_query(bot(), "tea")) == DIMENSIONS


def test_a_wrong_key_stops_the_asking_at_once_but_only_with_that_key(openai: OpenAIServer) -> None:
    wrong = "sk-wrong-0123456789"
    assert query_code(openai_key=wrong) == "unauthorized"
    problem = reason_of(lambda: embed_query(bot(openai_key=wrong), "tea"))
    assert (problem.code, problem.reason) == ("breaker_open", "The embeddings API does not accept the key.")
    assert len(openai.requests) == 1
    assert len(embed_query(bot(), "tea")) == DIMENSIONS


@pytest.mark.usefixtures("short_times")
def test_only_one_of_many_pays_for_the_trial(openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "OPEN_SECONDS", 1.0)
    openai.fail("hang", seconds=9)
    for _ in range(3):
        query_code()
    time.sleep(1.0)
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda number: query_code(f"query {number}"), range(8)))
    assert sorted(codes) == ["breaker_open"] * 7 + ["timeout"]
