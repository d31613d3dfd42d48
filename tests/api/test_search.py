"""GET /api/v1/memories?search="""

import pytest

from instances.models import Instance
from memories.embedding.backfill import embed_pending
from tests.api.calling import Caller
from tests.factories import make_instance, make_key, make_memory, scope_of

pytestmark = pytest.mark.django_db
URL = "/api/v1/memories?instanceId=offline-bot&search="


@pytest.fixture
def bot() -> Instance:
    bot = make_instance("offline-bot", embedder="offline")
    make_memory(bot, "Bob's office is in Munich.", category="fact", importance=7)
    make_memory(bot, "Alice prefers tables over prose.", category="preference")
    make_memory(bot, "The <b>office</b> dog is called Rex.", category="fact")
    embed_pending(scope_of(bot))
    return bot


@pytest.fixture
def caller(bot: Instance) -> Caller:
    return Caller(make_key(bot))


def test_the_best_hit_comes_first_with_its_score_and_snippet(caller: Caller) -> None:
    answer = caller.get(URL + "where+is+the+office+in+munich")
    assert (answer.json["searchMode"], answer.json["nextCursor"]) == ("hybrid", None)
    best = answer.json["memories"][0]
    assert best["content"] == "Bob's office is in Munich."
    assert best["snippet"] == "Bob&#x27;s <mark>office</mark> is in <mark>Munich</mark>."
    scores = [memory["score"] for memory in answer.json["memories"]]
    assert scores == sorted(scores, reverse=True)
    assert "explain" not in best


def test_an_explanation_adds_up(caller: Caller) -> None:
    for hit in caller.get(URL + "office&explain=true").json["memories"]:
        explain = hit["explain"]
        total = explain["vector"]["rrf"] + explain["keyword"]["rrf"] + sum(explain["boosts"].values())
        assert explain["final"] == pytest.approx(total)
        assert hit["score"] == pytest.approx(explain["final"], abs=1e-6)
    best = caller.get(URL + "munich&explain=true").json["memories"][0]["explain"]
    assert (best["keyword"]["rank"], best["keyword"]["matched"]) == (1, ["munich"])
    assert best["keyword"]["rrf"] == pytest.approx(1 / 61)
    assert best["vector"]["similarity"] > 0


def test_modes_and_filters(caller: Caller) -> None:
    assert caller.get(URL + "office&mode=keyword").json["searchMode"] == "keyword"
    assert caller.get(URL + "office&mode=vector").json["searchMode"] == "vector"
    found = caller.get(URL + "office&category=preference").json["memories"]
    assert {memory["category"] for memory in found} == {"preference"}
    page = caller.get(URL + "office&limit=1&offset=1").json
    assert (len(page["memories"]), page["offset"]) == (1, 1)


def test_markup_in_a_memory_is_escaped_in_its_snippet(caller: Caller) -> None:
    snippets = [memory["snippet"] for memory in caller.get(URL + "rex").json["memories"]]
    assert any("&lt;b&gt;" in snippet for snippet in snippets)
    assert not any("<b>" in snippet for snippet in snippets)


def test_without_vectors_it_says_why() -> None:
    bot = make_instance("keyless-bot")
    make_memory(bot, "The office is in Munich")
    answer = Caller(make_key(bot)).get("/api/v1/memories?instanceId=keyless-bot&search=office").json
    assert answer["searchMode"] == "keyword"
    assert "No OpenAI or Azure key" in answer["reason"]
    assert answer["total"] == 1


@pytest.mark.parametrize(
    "text", ["%00", "%27%22%5C%25_%26%7C%21%28%29%3A%2A%3C-%3E", "%F0%9F%99%82", "x" * 10_000, "the", "-", "%D7%A9"]
)
def test_no_query_breaks_it(caller: Caller, text: str) -> None:
    assert caller.get(URL + text).status == 200


def test_bad_input(caller: Caller) -> None:
    assert caller.get(URL + "x" * 10_001).error == (400, "invalid")
    assert caller.get(URL + "office&mode=psychic").error == (400, "invalid")
    assert caller.get(URL + "office&cursor=abc").error == (400, "invalid")
    assert caller.get(URL + "office&offset=10001").error == (400, "invalid")


def test_two_instances_never_meet(caller: Caller) -> None:
    other = make_instance("other-bot", embedder="offline")
    make_memory(other, "The secret office of the others")
    embed_pending(scope_of(other))
    assert "secret" not in caller.get(URL + "secret+office").response.content.decode().replace("secret+office", "")
    assert caller.get("/api/v1/memories?instanceId=other-bot&search=office").error == (404, "not_found")


def test_exclusions_alone_find_nothing_and_say_why(caller: Caller) -> None:
    answer = caller.get(URL + "-office").json
    assert (answer["total"], answer["memories"]) == (0, [])
    assert answer["reason"] == "This only says what to leave out. Add words to look for."
