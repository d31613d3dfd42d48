"""The tools of an agent, each on its own; `tests/start/test_mcp.py` calls them through the protocol."""

import pytest
from jsonschema import Draft202012Validator

from accounts.access import Scope, open_only_instance
from accounts.keys import actor_presenting
from memories.mcp.tools import TOOLS
from memories.models import Memory, MemoryVersion
from memoryconsole.errors import Conflict, Invalid, NotAllowed, NotFound
from tests.factories import make_instance, make_key, make_memories, make_memory, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def scope() -> Scope:
    return scope_of(make_instance("agent-bot"))


def call(scope: Scope, tool: str, **arguments):
    return TOOLS[tool].call(scope, arguments).structured


def scope_of_key(key: str) -> Scope:
    actor = actor_presenting(f"Bearer {key}")
    assert actor
    return open_only_instance(actor)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_schema_names_what_is_needed_and_nothing_of_the_instance(tool):
    assert tool.schema["type"] == "object"
    assert tool.schema["additionalProperties"] is False
    assert not any("instance" in name.lower() for name in tool.schema["properties"])
    assert all(name == name.lower() for name in tool.schema["properties"])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_save", {"key": "k", "content": "x", "importance": 11}),
        ("memory_save", {"key": "k", "content": "x", "importance": 0}),
        ("memory_search", {"query": "tea", "max_results": 51}),
        ("memory_search", {"query": "tea", "max_results": 0}),
    ],
)
def test_a_schema_says_which_numbers_are_taken(scope, tool, arguments):
    """In JSON Schema's words: a model knows them before it calls, and a host that checks schemas finds no others."""
    described = Draft202012Validator(TOOLS[tool].schema)
    assert not described.is_valid(arguments)
    with pytest.raises(Invalid):
        call(scope, tool, **arguments)
    assert described.is_valid({name: 5 if isinstance(value, int) else value for name, value in arguments.items()})


def test_save_fills_in_what_is_left_out(scope):
    call(scope, "memory_save", key="tea", content="Ada drinks tea.", type=None, category=None, importance=None)
    memory = Memory.objects.get(key="tea")
    assert (memory.role, memory.category, memory.importance, memory.source) == ("context", "general", 5, "mcp")


def test_superseding_keeps_what_is_left_out_and_leaves_a_version(scope):
    first = call(scope, "memory_save", key="tea", content="Ada drinks tea.", type="lesson", importance=9)
    second = call(scope, "memory_save", key="tea", content="Ada drinks mate.", supersede_reason="She said so.")
    assert second["memory"]["id"] == first["memory"]["id"]
    assert (second["memory"]["type"], second["memory"]["importance"]) == ("lesson", 9)
    (version,) = MemoryVersion.objects.filter(instance=scope.instance)
    assert (version.content, version.reason) == ("Ada drinks tea.", "She said so.")


def test_superseding_a_text_takes_its_summary_away(scope):
    memory = make_memory(scope.instance, "Ada drinks tea.", key="tea", summary="Tea")
    call(scope, "memory_save", key="tea", content="Ada drinks mate.", supersede_reason="She said so.")
    memory.refresh_from_db()
    assert (memory.summary, MemoryVersion.objects.get(memory_id=memory.id).summary) == ("", "Tea")


def test_a_text_that_sounds_like_another_type_is_saved_with_a_hint(scope):
    answer = call(scope, "memory_save", key="deploy", content="Never deploy on Fridays.")
    assert (answer["event"], answer["memory"]["type"]) == ("created", "context")
    assert answer["hints"] == [{"field": "type", "value": "lesson", "reason": "“Never” sounds like a lesson."}]
    assert "hints" not in call(scope, "memory_save", key="rule", content="Never deploy on Mondays.", type="warning")


def test_recall_warns_when_too_many_belong_into_every_prompt(scope):
    make_memories(scope.instance, 39)
    assert "warnings" not in call(scope, "memory_recall", query="tea")
    make_memory(scope.instance, "One more.")
    (warning,) = call(scope, "memory_recall", query="tea")["warnings"]
    assert warning.startswith("40 of at most 50")


def test_a_taken_key_shows_what_is_there(scope):
    call(scope, "memory_save", key="tea", content="Ada drinks tea.")
    with pytest.raises(Conflict, match="supersede_reason") as refused:
        call(scope, "memory_save", key="tea", content="Ada drinks mate.", supersede_reason=" ")
    assert refused.value.extra["memory"]["content"] == "Ada drinks tea."
    assert Memory.objects.get(key="tea").content == "Ada drinks tea."


def test_words_stand_for_types_and_categories(scope):
    saved = call(scope, "memory_save", key="a", content="Look before you leap.", type="warning")
    assert saved["memory"]["type"] == "lesson"
    saved = call(scope, "memory_save", key="b", content="Sharpen the saw.", category="skill-note")
    assert (saved["memory"]["type"], saved["memory"]["category"]) == ("lesson", "general")
    listed = call(scope, "memory_list", type="insight")
    assert [memory["key"] for memory in listed["memories"]] == ["b", "a"]


def test_credentials_are_not_kept(scope):
    saved = call(scope, "memory_save", key="k", content="The key is sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD.")
    assert saved["redacted"]
    assert "sk-abc" not in str(saved)


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("memory_save", {"key": "", "content": "x"}, "key"),
        ("memory_save", {"key": "k"}, "content"),
        ("memory_save", {"key": "k", "content": "x", "importance": 11}, "importance"),
        ("memory_save", {"key": "k", "content": "x", "type": "sonnet"}, "type"),
        ("memory_save", {"key": "k", "content": "x", "category": "sonnet"}, "category"),
        ("memory_save", {"key": "k", "content": "x", "instance": "sales-bot"}, "instance"),
        ("memory_save", {"key": "k", "content": "nul\x00"}, "content"),
        ("memory_search", {"query": " "}, "query"),
        ("memory_search", {"query": "-tea"}, "query"),
        ("memory_search", {"query": "tea", "max_results": 0}, "max_results"),
        ("memory_list", {"type": 3}, "type"),
        ("memory_delete", {"key": None}, "key"),
    ],
)
def test_bad_input_is_named_as_the_agent_wrote_it(scope, tool, arguments, field):
    with pytest.raises(Invalid) as refused:
        call(scope, tool, **arguments)
    assert list(refused.value.errors) == [field]


def test_search_says_how_it_searched_and_narrows(scope):
    make_memory(scope.instance, "Ada likes green tea", category="preference")
    make_memory(scope.instance, "Tea is sold out", category="event")
    found = call(scope, "memory_search", query="tea", category="event")
    assert [hit["content"] for hit in found["results"]] == ["Tea is sold out"]
    assert found["searchMode"] == "keyword"
    assert "No OpenAI" in found["reason"]


def test_what_another_instance_shares_says_so(scope):
    support = make_instance("support-bot")
    shared = make_memory(support, "Refunds take thirty days", key="refunds", visibility="team")
    make_memory(support, "Refunds are a secret of ours")
    own = make_memory(scope.instance, "Refunds are rare")
    reader = scope_of_key(make_key(scope.instance, read_team=True))
    origins = {hit["id"]: hit.get("sharedFrom") for hit in call(reader, "memory_search", query="refunds")["results"]}
    assert origins == {str(shared.id): "support-bot", str(own.id): None}
    recalled = call(reader, "memory_recall", query="How long do refunds take?")["memories"]
    assert {"id": str(shared.id), "key": "refunds", "sharedFrom": "support-bot"} in recalled
    assert {"id": str(own.id), "key": None} in recalled


def test_search_marks_a_memory_that_another_one_has_replaced(scope):
    make_memory(scope.instance, "The office is in Kyiv", key="office")
    make_memory(scope.instance, "The office is in Lviv", key="office", dedupe="create", supersedeReason="They moved.")
    (hit,) = call(scope, "memory_search", query="Kyiv", max_results=1)["results"]
    assert (hit["superseded"], hit["supersedeReason"]) == (True, "They moved.")


def test_a_long_list_says_that_there_is_more(scope):
    make_memories(scope.instance, 101)
    listed = call(scope, "memory_list")
    assert (len(listed["memories"]), listed["total"]) == (100, 101)
    assert "memory_search" in listed["note"]


def test_delete_takes_the_past_along_and_nobody_elses(scope):
    make_memory(scope.instance, "Old", key="plan")
    make_memory(scope.instance, "New", key="plan", dedupe="create", supersedeReason="It changed.")
    theirs = make_memory(scope.instance, "Alice's plan", key="plan", owner="alice", visibility="private")
    assert call(scope, "memory_delete", key="plan")["deleted"] == 2
    assert list(Memory.objects.filter(instance=scope.instance)) == [theirs]
    with pytest.raises(NotFound, match="“plan”"):
        call(scope, "memory_delete", key="plan")


# Keys of end users


def test_a_key_that_an_end_user_has_is_taken(scope):
    theirs = make_memory(scope.instance, "Alice drinks tea.", key="drink", owner="alice")
    with pytest.raises(Conflict, match="supersede_reason") as refused:
        call(scope, "memory_save", key="drink", content="Everybody drinks mate.")
    assert refused.value.extra["memory"] == call(scope, "memory_list")["memories"][0]
    assert refused.value.extra["memory"]["owner"] == "alice"
    saved = call(scope, "memory_save", key="drink", content="Alice drinks mate.", supersede_reason="She said so.")
    assert (saved["event"], saved["memory"]["id"], saved["memory"]["owner"]) == ("updated", str(theirs.id), "alice")
    assert Memory.objects.get(instance=scope.instance).content == "Alice drinks mate."


def test_a_key_that_an_end_user_has_can_be_deleted(scope):
    make_memory(scope.instance, "Alice drank tea.", key="drink", owner="alice")
    make_memory(scope.instance, "Alice drinks mate.", key="drink", owner="alice", dedupe="create")
    kept = make_memory(make_instance(), "Alice drinks water.", key="drink", owner="alice")
    receipt = call(scope, "memory_delete", key="drink")
    assert (receipt["deleted"], receipt["owner"]) == (2, "alice")
    assert list(Memory.objects.all()) == [kept]


def test_what_belongs_to_no_one_comes_first(scope):
    theirs = make_memory(scope.instance, "Alice drinks tea.", key="drink", owner="alice")
    own = make_memory(scope.instance, "Everybody drinks mate.", key="drink")
    saved = call(scope, "memory_save", key="drink", content="Everybody drinks water.", supersede_reason="It is free.")
    assert saved["memory"]["id"] == str(own.id)
    assert "owner" not in call(scope, "memory_delete", key="drink")
    assert list(Memory.objects.filter(instance=scope.instance)) == [theirs]


@pytest.mark.parametrize("reason", [None, "They all said so."])
def test_a_key_that_several_end_users_have_means_none_of_them(scope, reason):
    for owner in ("alice", "bob"):
        make_memory(scope.instance, f"{owner} drinks tea.", key="drink", owner=owner)
    with pytest.raises(Conflict, match="“alice”, “bob”"):
        call(scope, "memory_save", key="drink", content="They drink mate.", supersede_reason=reason)
    with pytest.raises(Conflict, match="“alice”, “bob”"):
        call(scope, "memory_delete", key="drink")
    assert Memory.objects.filter(instance=scope.instance).count() == 2


def test_the_key_of_a_private_memory_is_free(scope):
    make_memory(scope.instance, "Alice keeps a diary", key="diary", visibility="private", owner="alice")
    make_memory(scope.instance, "Bob had a diary", key="diary", owner="bob", expiresAt="2020-01-01T00:00:00Z")
    assert call(scope, "memory_save", key="diary", content="The diary is in the safe.")["event"] == "created"


def test_the_instance_is_the_keys(scope):
    make_memory(scope.instance, "A secret of the agent")
    other = make_instance("sales-bot")
    assert call(scope_of_key(make_key(other)), "memory_list")["total"] == 0
    assert call(scope_of_key(make_key(scope.instance)), "memory_list")["total"] == 1


def test_a_read_only_key_may_not_write(scope):
    make_memory(scope.instance, "Here to stay", key="stay")
    reader = scope_of_key(make_key(scope.instance, read_only=True))
    for tool, arguments in {"memory_save": {"key": "k", "content": "x"}, "memory_delete": {"key": "stay"}}.items():
        with pytest.raises(NotAllowed, match="only read"):
            call(reader, tool, **arguments)
    assert call(reader, "memory_list")["total"] == 1


def test_a_key_of_all_instances_is_no_answer_even_while_there_is_only_one(scope):
    with pytest.raises(NotAllowed, match="exactly one"):
        scope_of_key(make_key())


def test_a_key_of_many_instances_or_none_is_no_answer(scope):
    for key in (make_key(), make_key(scope.instance, make_instance())):
        with pytest.raises(NotAllowed, match="exactly one"):
            scope_of_key(key)
    gone = make_instance("gone-bot")
    key = make_key(gone)
    gone.delete()
    with pytest.raises(NotAllowed, match="exactly one"):
        scope_of_key(key)


def test_private_memories_are_nobodys_business(scope):
    make_memory(scope.instance, "Alice keeps a diary", visibility="private", owner="alice")
    assert call(scope, "memory_list")["total"] == 0
    assert call(scope, "memory_search", query="diary")["results"] == []


def test_recall_gives_the_block_and_what_is_in_it(scope):
    make_memory(scope.instance, "Ada is the owner of the shop", key="owner", role="identity")
    make_memory(scope.instance, "Alice keeps a diary", visibility="private", owner="alice", role="identity")
    answer = TOOLS["memory_recall"].call(scope, {"query": "Who owns the shop?"})
    assert answer.text == answer.structured["context"]
    assert "[owner]: Ada is the owner of the shop" in answer.text
    assert "diary" not in answer.text
    assert [memory["key"] for memory in answer.structured["memories"]] == ["owner"]


def test_recall_takes_a_message_of_any_length_the_api_takes(scope):
    make_memory(scope.instance, "Ada likes green tea", key="tea")
    message = "Please read this letter and say which tea Ada likes. " + "It goes on and on. " * 500
    assert "[tea]" in call(scope, "memory_recall", query=message)["context"]
