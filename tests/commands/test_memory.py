import os
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_snake

from memories.draft import MemoryDraft
from memories.filters import Filters
from memories.models import MAX_CONTENT, AuditEntry, Memory, MemoryVersion
from tests.commands.conftest import Shell
from tests.factories import make_conversation, make_instance, make_memories, make_memory

NOBODY = "01988f5e-4b7c-7e1a-9c64-2f0d3b8a5c11"
DOCS = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.fixture(autouse=True)
def support_bot(db: None) -> Any:
    return make_instance("support-bot")


@pytest.fixture
def sales_bot(db: None) -> Any:
    return make_instance("sales-bot")


def add(shell: Shell, *words: str, **how: Any) -> Any:
    return shell("memory", "add", *words, "--instance", "support-bot", **how)


class TestAdd:
    def test_a_fact(self, shell: Shell):
        ran = add(shell, "fact", "Alice works at Acme")
        memory = Memory.objects.get()
        assert (ran.code, ran.out, ran.err) == (0, f"Created {memory.id}\n", "")
        assert (memory.content, memory.category, memory.importance) == ("Alice works at Acme", "fact", 5)
        assert (memory.role, memory.source, memory.instance.slug) == ("context", "manual", "support-bot")
        assert AuditEntry.objects.get().actor == "shell server"

    def test_everything_that_can_be_said_about_it(self, shell: Shell, support_bot: Any):
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

    def test_every_field_of_a_draft_has_an_option(self, shell: Shell):
        text = add(shell, "--help").out
        for name in MemoryDraft.model_fields.keys() - {"category", "content"}:
            singular = "--" + name.replace("_", "-").removesuffix("s")
            assert re.search(rf"{singular}s?\b", text), name

    def test_from_standard_input(self, shell: Shell):
        add(shell, "event", "-", stdin="Grüße\naus Köln\n".encode())
        assert Memory.objects.get().content == "Grüße\naus Köln"

    def test_text_may_begin_with_a_dash(self, shell: Shell):
        add(shell, "general", "- buy milk")
        assert Memory.objects.get().content == "- buy milk"

    def test_other_words(self, shell: Shell):
        add(shell, "skill-note", "Ask first")
        memory = Memory.objects.get()
        assert (memory.category, memory.role) == ("general", "lesson")

    def test_the_same_key_again_updates_and_keeps_the_earlier_text(self, shell: Shell):
        add(shell, "fact", "Acme has 10 seats", "--key", "seats")
        ran = add(shell, "fact", "Acme has 12 seats", "--key", "seats")
        memory = Memory.objects.get()
        assert (ran.code, ran.out) == (0, f"Updated {memory.id}\n")
        assert memory.content == "Acme has 12 seats"
        assert MemoryVersion.objects.get().content == "Acme has 10 seats"

    def test_reject_shows_who_holds_the_key(self, shell: Shell):
        add(shell, "fact", "Acme has 10 seats", "--key", "seats")
        ran = add(shell, "fact", "Acme has 12 seats", "--key", "seats", "--dedupe", "reject")
        assert (ran.code, ran.out) == (4, "")
        assert "says: Acme has 10 seats" in ran.err
        assert "The key “seats” is taken. Add --supersede-reason to say why" in ran.err
        assert Memory.objects.get().content == "Acme has 10 seats"

    def test_credentials_are_redacted_and_said(self, shell: Shell):
        ran = add(shell, "fact", "Key sk-abcdefghijklmnopqrstuvwxyz0123456789")
        assert "sk-abc" not in Memory.objects.get().content
        assert "Redacted before it was stored: API key." in ran.err

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
    def test_bad_input_is_explained_and_saves_nothing(self, shell: Shell, words: list[str], complaint: str):
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
    def test_bad_standard_input(self, shell: Shell, raw: bytes, complaint: str):
        ran = add(shell, "fact", "-", stdin=raw)
        assert (ran.code, ran.err) == (2, f"{complaint}\n")
        assert not Memory.objects.exists()

    def test_every_reason_has_its_line(self, shell: Shell):
        err = add(shell, "color", "x", "--importance", "11", "--role", "boss").err
        assert [line.partition(":")[0] for line in err.splitlines()] == ["CATEGORY", "--role", "--importance"]

    def test_a_conversation_of_another_instance(self, shell: Shell, sales_bot: Any):
        foreign = make_conversation(sales_bot, "Hello")
        ran = add(shell, "fact", "x", "--source-conversation-id", str(foreign.id))
        assert ran.code == 2
        assert not Memory.objects.exists()


class TestInstance:
    @pytest.mark.parametrize("action", [["add", "fact", "x"], ["list"], ["show", NOBODY], ["delete", "--all"]])
    @pytest.mark.parametrize(("slug", "code"), [("nobody", 3), ("../x", 3), ("", 2)])
    def test_it_must_exist(self, shell: Shell, action: list[str], slug: str, code: int):
        ran = shell("memory", *action, "--instance", slug)
        assert (ran.code, ran.out) == (code, "")
        assert ran.err

    @pytest.mark.parametrize("action", [["add", "fact", "x"], ["list"], ["show", NOBODY], ["delete", "--all"]])
    def test_it_must_be_named(self, shell: Shell, action: list[str]):
        ran = shell("memory", *action)
        assert (ran.code, ran.out) == (2, "")
        assert "--instance" in ran.err

    def test_two_instances_do_not_see_each_other(self, shell: Shell, support_bot: Any, sales_bot: Any):
        secret = make_memory(support_bot, "Only support knows this")
        assert shell("memory", "list", "--instance", "sales-bot", "--json").json["memories"] == []
        shown = shell("memory", "show", str(secret.id), "--instance", "sales-bot")
        gone = shell("memory", "delete", str(secret.id), "--instance", "sales-bot", "--yes")
        everything = shell("memory", "delete", "--all", "--yes", "--instance", "sales-bot")
        assert (shown.code, gone.code, everything.code) == (3, 3, 1)
        assert shown.err == gone.err == "There is no such memory in this instance.\n"
        assert Memory.objects.get() == secret


class TestList:
    def ask(self, shell: Shell, *words: str, **how: Any) -> Any:
        return shell("memory", "list", "--instance", "support-bot", *words, **how)

    def found(self, shell: Shell, *words: str) -> list[str]:
        return [memory["content"] for memory in self.ask(shell, "--json", *words).json["memories"]]

    def test_plain_lines_newest_first(self, shell: Shell, support_bot: Any):
        make_memory(support_bot, "Older", category="relationship", importance=10, pinned=True)
        make_memory(support_bot, "Newer\n\twith a second line")
        ran = self.ask(shell)
        header, newer, older = ran.out.splitlines()
        assert (ran.code, ran.err) == (0, "2 of 2 memories in support-bot.\n")
        assert newer.endswith("  Newer with a second line")
        assert older.split()[1:4] == ["relationship", "10", "pinned"]
        assert header.index("CONTENT") == newer.index("Newer") == older.index("Older")
        assert "\t" not in ran.out
        assert "\x1b" not in ran.out

    def test_json_is_what_the_api_answers(self, shell: Shell, support_bot: Any):
        make_memories(support_bot, 3)
        answer = self.ask(shell, "--json", "--limit", "2").json
        assert (answer["total"], answer["limit"], answer["offset"]) == (3, 2, 0)
        assert answer["searchMode"] is None
        rest = self.ask(shell, "--json", "--cursor", answer["nextCursor"]).json
        assert len(rest["memories"]) == 1
        assert rest["nextCursor"] is None

    def test_the_next_part_is_offered(self, shell: Shell, support_bot: Any):
        make_memories(support_bot, 3)
        assert self.ask(shell, "--limit", "2").err == "2 of 3 memories in support-bot. More: --offset 2\n"
        assert self.ask(shell, "--limit", "2", "--offset", "2").err == "1 of 3 memories in support-bot.\n"

    def test_every_filter_of_the_api_is_an_option(self, shell: Shell):
        for action in ("list", "delete"):
            text = shell("memory", action, "--help").out
            for name in Filters.model_fields:
                assert f"--{name.replace('_', '-')}" in text

    @pytest.mark.parametrize(
        "words",
        [
            ["--category", "event"],
            ["--role", "lesson"],
            ["--role", "warning"],
            ["--tag", "a", "--tag", "b"],
            ["--source", "crm"],
            ["--owner", "alice"],
            ["--visibility", "team"],
            ["--pinned"],
            ["--min-importance", "9"],
            ["--occurred-after", "2026-05-01"],
            ["--category", "event", "--min-importance", "9", "--pinned"],
        ],
    )
    def test_filters_narrow(self, shell: Shell, support_bot: Any, words: list[str]):
        make_memory(support_bot, "Other", tags=["a"], occurredAt="2026-04-30T00:00:00Z")
        wanted = {"category": "event", "role": "lesson", "tags": ["a", "b"], "source": "crm", "owner": "alice"}
        more = {"visibility": "team", "pinned": True, "importance": 9, "occurredAt": "2026-05-02T00:00:00Z"}
        make_memory(support_bot, "Wanted", **wanted, **more)
        assert self.found(shell, *words) == ["Wanted"]

    def test_not_pinned(self, shell: Shell, support_bot: Any):
        make_memory(support_bot, "Pinned", pinned=True)
        make_memory(support_bot, "Loose")
        assert self.found(shell, "--no-pinned") == ["Loose"]

    def test_nothing_is_fine_too(self, shell: Shell):
        ran = self.ask(shell)
        assert (ran.code, ran.out, ran.err) == (0, "", "Nothing in support-bot matches.\n")

    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            (["--limit", "0"], "--limit: Must be at least 1."),
            (["--limit", "101"], "--limit: Must be at most 100."),
            (["--limit", "few"], "--limit: Enter a whole number."),
            (["--offset", "-1"], "--offset: Must be at least 0."),
            (["--offset", "10001"], "--offset: Must be at most 10000."),
            (["--category", "color"], "--category: “color” is not a category."),
            (["--min-importance", "11"], "--min-importance: Must be at most 10."),
            (["--created-after", "soon"], "--created-after: Enter a date and time"),
            (["--conversation-id", "7"], "--conversation-id: This is not an id."),
            (["--embedding", "done"], "--embedding: “done” is not known. Choose one of:"),
            (["--cursor", "abc"], "--cursor: This cursor is not valid here."),
        ],
    )
    def test_bad_filters(self, shell: Shell, words: list[str], complaint: str):
        ran = self.ask(shell, *words)
        assert (ran.code, ran.out) == (2, "")
        assert complaint in ran.err

    def test_a_table_with_colours_on_a_terminal(self, shell: Shell, support_bot: Any, monkeypatch: pytest.MonkeyPatch):
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", "70")
        memory = make_memory(support_bot, "[bold]Brackets[/bold] are text " * 20, category="event", tags=["a"])
        coloured = self.ask(shell, terminal=True).out
        assert "\x1b[33mevent" in coloured
        plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
        assert "[bold]Brackets[/bold]" in plain
        assert str(memory.id) in plain.replace("\n", "").replace(" ", "")
        assert max(len(line) for line in plain.splitlines()) <= 70

    def test_no_color_is_respected(self, shell: Shell, support_bot: Any, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
        make_memory(support_bot, "Hello", category="event")
        assert not re.search(r"\x1b\[[0-9;]*3[0-7]", self.ask(shell, terminal=True).out)

    @pytest.mark.parametrize("terminal", [True, False])
    def test_escape_sequences_in_memories_do_not_reach_the_terminal(
        self, shell: Shell, support_bot: Any, terminal: bool
    ):
        memory = make_memory(support_bot, "a\x1b]0;owned\x07b\x9b2J", tags=["\x1b[5m"], key="k\x1b[5m")
        for ran in (
            self.ask(shell, terminal=terminal),
            self.ask(shell, "--json", terminal=terminal),
            shell("memory", "show", str(memory.id), "--instance", "support-bot", terminal=terminal),
        ):
            assert not re.search(r"\x1b(?!\[[0-9;]*m)|\x1b\[5m|[\x07\x9b]", ran.out)


class TestShow:
    def show(self, shell: Shell, *words: str, **how: Any) -> Any:
        return shell("memory", "show", *words, "--instance", "support-bot", **how)

    @pytest.mark.parametrize("terminal", [True, False])
    def test_the_whole_memory(self, shell: Shell, support_bot: Any, terminal: bool):
        memory = make_memory(support_bot, "First paragraph\n\nSecond paragraph", key="story", tags=["long"])
        ran = self.show(shell, str(memory.id), terminal=terminal)
        assert ran.code == 0
        for text in (str(memory.id), "story", "long", "5 of 10", "First paragraph", "Second paragraph"):
            assert text in ran.out

    def test_json(self, shell: Shell, support_bot: Any):
        memory = make_memory(support_bot, "Hello")
        answer = self.show(shell, str(memory.id), "--json").json["memory"]
        assert (answer["id"], answer["content"]) == (str(memory.id), "Hello")
        assert {to_snake(name) for name in answer} - {"instance_id"} <= {field.attname for field in Memory._meta.fields}

    @pytest.mark.parametrize("id", [NOBODY, "7", "not-an-id", ""])
    def test_what_is_not_there(self, shell: Shell, id: str):
        ran = self.show(shell, id)
        assert (ran.code, ran.out, ran.err) == (3, "", "There is no such memory in this instance.\n")


class TestDelete:
    def delete(self, shell: Shell, *words: str, **how: Any) -> Any:
        return shell("memory", "delete", "--instance", "support-bot", *words, **how)

    def test_by_id_with_a_receipt(self, shell: Shell, support_bot: Any):
        memory, kept = make_memories(support_bot, 2)
        ran = self.delete(shell, str(memory.id), "--yes")
        assert ran.code == 0
        assert ran.out == "Deleted 1 memory with 0 versions, 1 chunk, 0 vectors and 0 attachments.\n"
        assert Memory.objects.get() == kept

    def test_json_receipt(self, shell: Shell, support_bot: Any):
        first, second = make_memories(support_bot, 2)
        receipt = self.delete(shell, str(first.id), str(second.id), "--yes", "--json").json
        assert receipt == {"deleted": 2, "versions": 0, "chunks": 2, "embeddings": 0, "attachments": 0}

    def test_twice_is_not_found(self, shell: Shell, support_bot: Any):
        memory = make_memory(support_bot)
        self.delete(shell, str(memory.id), "--yes")
        assert self.delete(shell, str(memory.id), "--yes").code == 3

    def test_one_unknown_id_deletes_nothing(self, shell: Shell, support_bot: Any):
        memory = make_memory(support_bot)
        assert self.delete(shell, str(memory.id), NOBODY, "--yes").code == 3
        assert Memory.objects.exists()

    def test_by_filter(self, shell: Shell, support_bot: Any):
        make_memories(support_bot, 3, category="event")
        kept = make_memory(support_bot, category="fact")
        assert self.delete(shell, "--category", "event", "--yes").out.startswith("Deleted 3 memories")
        assert Memory.objects.get() == kept

    def test_all(self, shell: Shell, support_bot: Any):
        make_memories(support_bot, 3)
        assert self.delete(shell, "--all", "--yes", "--json").json["deleted"] == 3

    def test_a_wrong_expectation_deletes_nothing(self, shell: Shell, support_bot: Any):
        make_memories(support_bot, 3)
        ran = self.delete(shell, "--all", "--yes", "--expected", "1234")
        assert (ran.code, ran.err) == (4, "3 memories match now, not 1,234. Nothing was deleted.\n")
        assert Memory.objects.count() == 3
        assert self.delete(shell, "--all", "--yes", "--expected", "3").code == 0

    def test_nothing_matches(self, shell: Shell):
        ran = self.delete(shell, "--category", "event", "--yes")
        assert (ran.code, ran.out, ran.err) == (1, "", "Nothing in support-bot matches; nothing was deleted.\n")

    @pytest.mark.parametrize(
        "words",
        [
            [],
            ["--include-superseded"],
            ["--owner", ""],
            ["--owner", "", "--category", "event"],
            ["--all", "--category", "event"],
            ["ID", "--category", "event"],
            ["ID", "--all"],
            ["ID", "--expected", "1"],
            ["ID", "--include-superseded"],
        ],
    )
    def test_it_must_be_clear_what_goes(self, shell: Shell, support_bot: Any, words: list[str]):
        memory = make_memory(support_bot, category="event")
        ran = self.delete(shell, *(str(memory.id) if word == "ID" else word for word in words), "--yes")
        assert (ran.code, ran.out) == (2, "")
        assert Memory.objects.exists()

    @pytest.mark.parametrize("words", [["ID"], ["--all"], ["--category", "event"]])
    def test_without_anybody_to_ask_it_refuses(self, shell: Shell, support_bot: Any, words: list[str]):
        memory = make_memory(support_bot, category="event")
        ran = self.delete(shell, *(str(memory.id) if word == "ID" else word for word in words), stdin=b"y\n")
        assert (ran.code, ran.out, ran.err) == (2, "", "There is nobody to ask: add --yes to delete.\n")
        assert Memory.objects.exists()

    @pytest.mark.parametrize("answer", [b"n\n", b"\n", b"", b"perhaps\n"])
    def test_anything_but_yes_is_no(self, shell: Shell, support_bot: Any, answer: bytes):
        make_memory(support_bot, "Precious")
        ran = self.delete(shell, "--all", stdin=answer, person=True)
        assert (ran.code, ran.out) == (1, "")
        assert "Precious" in ran.err
        assert "Delete 1 memory for good? [y/N]" in ran.err
        assert Memory.objects.exists()

    @pytest.mark.parametrize("answer", [b"y\n", b"Yes\n"])
    def test_yes(self, shell: Shell, support_bot: Any, answer: bytes):
        make_memories(support_bot, 12)
        ran = self.delete(shell, "--all", stdin=answer, person=True)
        assert ran.code == 0
        assert "… and 2 more" in ran.err
        assert not Memory.objects.exists()


def test_every_option_is_in_the_documentation(shell: Shell):
    text = DOCS.read_text()
    for action in ("add", "list", "search", "show", "delete"):
        for option in re.findall(r"--[a-z][a-z-]+", shell("memory", action, "--help").out):
            assert option in text, option


def test_an_action_is_needed(shell: Shell):
    assert shell("memory").code == 2
    assert shell("memory", "forget").code == 2


def test_a_reader_that_goes_away_is_no_error(shell: Shell, support_bot: Any, monkeypatch: pytest.MonkeyPatch):
    """`memory list | head -1`, with a pipe whose other end is closed."""
    make_memory(support_bot)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        ran = shell("memory", "list", "--instance", "support-bot")
    assert (ran.code, "Traceback" in ran.err) == (0, False)
