import re
from typing import Any

import pytest

from memories.draft import MemoryDraft
from memories.models import MAX_CONTENT, AuditEntry, Memory, MemoryVersion
from tests.commands.conftest import Shell
from tests.factories import make_conversation

pytestmark = pytest.mark.usefixtures("support_bot")
NOBODY = "01988f5e-4b7c-7e1a-9c64-2f0d3b8a5c11"


def add(shell: Shell, *words: str, **how: Any) -> Any:
    return shell("memory", "add", *words, "--instance", "support-bot", **how)


def test_a_fact(shell: Shell):
    ran = add(shell, "fact", "Alice works at Acme")
    memory = Memory.objects.get()
    assert (ran.code, ran.out, ran.err) == (0, f"Created {memory.id}\n", "")
    assert (memory.content, memory.category, memory.importance) == ("Alice works at Acme", "fact", 5)
    assert (memory.role, memory.source, memory.instance.slug) == ("context", "manual", "support-bot")
    assert AuditEntry.objects.get().actor == "shell server"


def test_everything_that_can_be_said_about_it(shell: Shell, support_bot: Any):
    conversation = make_conversation(support_bot, "Hello")
    options = [
        *("--importance", "8", "--key", "alice-tea", "--tag", "tea", "--tag", "alice", "--role", "core"),
        *("--owner", "alice", "--summary", "Tea", "--confidence", "0.5", "--pinned", "--visibility", "private"),
        *("--source", "crm", "--source-conversation-id", str(conversation.id), "--channel", "phone"),
        *("--occurred-at", "2026-05-12T15:00:00+02:00", "--expires-at", "2100-01-01"),
        *("--evidence", '{"corroborated": 2}'),
    ]
    answer = add(shell, "preference", "Alice drinks tea", *options, "--json").json
    memory = answer["memory"]
    assert answer["event"] == "created"
    assert (memory["instanceId"], memory["role"], memory["tags"]) == ("support-bot", "identity", ["tea", "alice"])
    assert (memory["occurredAt"], memory["expiresAt"]) == ("2026-05-12T13:00:00Z", "2100-01-01T00:00:00Z")
    assert (memory["sourceConversationId"], memory["source"]) == (str(conversation.id), "crm")
    assert (memory["evidence"], memory["confidence"], memory["pinned"]) == ({"corroborated": 2}, 0.5, True)


def test_every_field_of_a_draft_has_an_option(shell: Shell):
    text = add(shell, "--help").out
    for name in MemoryDraft.model_fields.keys() - {"category", "content"}:
        singular = "--" + name.replace("_", "-").removesuffix("s")
        assert re.search(rf"{singular}s?\b", text), name


def test_from_standard_input(shell: Shell):
    add(shell, "event", "-", stdin="Grüße\naus Köln\n".encode())
    assert Memory.objects.get().content == "Grüße\naus Köln"


def test_text_may_begin_with_a_dash(shell: Shell):
    add(shell, "general", "- buy milk")
    assert Memory.objects.get().content == "- buy milk"


def test_other_words(shell: Shell):
    add(shell, "skill-note", "Ask first")
    memory = Memory.objects.get()
    assert (memory.category, memory.role) == ("general", "lesson")


def test_the_same_key_again_updates_and_keeps_the_earlier_text(shell: Shell):
    add(shell, "fact", "Acme has 10 seats", "--key", "seats")
    ran = add(shell, "fact", "Acme has 12 seats", "--key", "seats")
    memory = Memory.objects.get()
    assert (ran.code, ran.out) == (0, f"Updated {memory.id}\n")
    assert memory.content == "Acme has 12 seats"
    assert MemoryVersion.objects.get().content == "Acme has 10 seats"


def test_reject_shows_who_holds_the_key(shell: Shell):
    add(shell, "fact", "Acme has 10 seats", "--key", "seats")
    ran = add(shell, "fact", "Acme has 12 seats", "--key", "seats", "--dedupe", "reject")
    assert (ran.code, ran.out) == (4, "")
    assert "says: Acme has 10 seats" in ran.err
    assert "The key “seats” is taken. Add --supersede-reason to say why" in ran.err
    assert Memory.objects.get().content == "Acme has 10 seats"


def test_credentials_are_redacted_and_said(shell: Shell):
    ran = add(shell, "fact", "Key sk-abcdefghijklmnopqrstuvwxyz0123456789")
    assert "sk-abc" not in Memory.objects.get().content
    assert "Redacted before it was stored: API key." in ran.err


def test_json_says_what_was_redacted_as_the_api_does(shell: Shell):
    ran = add(shell, "fact", "Key sk-abcdefghijklmnopqrstuvwxyz0123456789", "--json")
    assert ran.json["redacted"] == ["API key"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["color", "x"], "CATEGORY: “color” is not a category. Choose one of: general, preference, fact,"),
        (["fact", ""], "TEXT: This may not be empty."),
        (["fact", " \n "], "TEXT: This may not be empty."),
        (["fact", "x" * (MAX_CONTENT + 1)], "TEXT: At most 32,000 characters are allowed; this has 32,001."),
        (["fact", "x", "--importance", "0"], "--importance: Must be at least 1."),
        (["fact", "x", "--importance", "11"], "--importance: Must be at most 10."),
        (["fact", "x", "--importance", "high"], "--importance: Enter a whole number."),
        (["fact", "x", "--importance", "3.5"], "--importance: Enter a whole number."),
        (["fact", "x", "--role", "boss"], "--role: “boss” is not a role."),
        (["fact", "x", "--tag", "t" * 65], "--tag: At most 64 characters are allowed"),
        (["fact", "x", "--confidence", "nan"], "--confidence: "),
        (["fact", "x", "--visibility", "private"], "A private memory needs an owner."),
        (["fact", "x", "--occurred-at", "yesterday"], "--occurred-at: Enter a date and time"),
        (["fact", "x", "--source-conversation-id", "7"], "--source-conversation-id: This is not an id."),
        (["fact", "x", "--source-conversation-id", NOBODY], "--source-conversation-id: There is no such"),
        (["fact", "x", "--evidence", "[1]"], "write a JSON object"),
        (["fact", "x", "--evidence", "{"], "this is not JSON"),
        (["fact", "x", "--evidence", '{"a": "\\ud800"}'], "this is not JSON: half of a surrogate pair is no text"),
        (["fact", "x", "--evidence", '{"a":' * 20_000], "this is not JSON: it is nested too deeply"),
        (["fact", "x", "--evidence", '{"a": 1, "a": 2}'], "this is not JSON: 'a' is there twice"),
        (["fact", "x\udcff"], "The arguments are not valid UTF-8."),
        (["fact", "x", "--colour", "red"], "unrecognized arguments: --colour red"),
        (["fact"], "the following arguments are required: TEXT"),
    ],
)
def test_bad_input_is_explained_and_saves_nothing(shell: Shell, words: list[str], complaint: str):
    ran = add(shell, *words)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err
    assert "Traceback" not in ran.err
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"caf\xe9", "TEXT: This is not valid UTF-8."),
        (b"a\x00b", "TEXT: The NUL character is not allowed."),
        (b"", "TEXT: This may not be empty."),
        (b"x" * 1024 * 1024, "TEXT: At most 32,000 characters are allowed; this has 1,048,576."),
        (b"x" * 9 * 1024 * 1024, "TEXT: This is far too long for a memory."),
    ],
)
def test_bad_standard_input(shell: Shell, raw: bytes, complaint: str):
    ran = add(shell, "fact", "-", stdin=raw)
    assert (ran.code, ran.err) == (2, f"{complaint}\n")
    assert not Memory.objects.exists()


def test_every_reason_has_its_line(shell: Shell):
    err = add(shell, "color", "x", "--importance", "11", "--role", "boss").err
    assert [line.partition(":")[0] for line in err.splitlines()] == ["CATEGORY", "--role", "--importance"]


def test_a_conversation_of_another_instance(shell: Shell, sales_bot: Any):
    foreign = make_conversation(sales_bot, "Hello")
    ran = add(shell, "fact", "x", "--source-conversation-id", str(foreign.id))
    assert ran.code == 2
    assert not Memory.objects.exists()
