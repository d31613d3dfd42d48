"""manage.py forget"""

import pytest
from django.db import connection

from instances.models import Instance
from memories.models import Memory
from memories.recall.golden import GoldenDraft, save_golden
from tests.commands.conftest import Shell
from tests.factories import make_conversation, make_instance, make_memories, make_memory, scope_of


@pytest.fixture
def bot(db: None) -> Instance:
    bot = make_instance("support-bot")
    make_memories(bot, 2, owner="alice")
    make_memory(bot, "Bob knows alice", owner="bob")
    make_conversation(bot, "Hello", userId="alice")
    for owner in ("alice", "bob"):
        save_golden(scope_of(bot), GoldenDraft(query="What does alice drink?", user_id=owner))
    return bot


def test_says_what_went(shell: Shell, bot: Instance) -> None:
    ran = shell("forget", "--instance", "support-bot", "--owner", "alice", "--yes")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "Forgotten:",
        "  2 memories",
        "  2 chunks",
        "  1 conversation",
        "  1 message",
        "  1 golden query",
        "Left of this owner, in every table of the instance: 0.",
        "Others still mention the id: 1 golden query, 1 memory.",
    ]
    assert Memory.objects.get().owner == "bob"


def test_json(shell: Shell, bot: Instance) -> None:
    ran = shell("forget", "--instance", "support-bot", "--owner", "alice", "--yes", "--json")
    assert ran.json["forgotten"]["memories"] == 2
    assert (ran.json["left"], ran.json["mentioned"]) == (0, {"memories": 1, "golden": 1})
    again = shell("forget", "--instance", "support-bot", "--owner", "alice", "--json")
    assert again.json["forgotten"]["memories"] == 0


def test_what_is_left_is_a_failure(shell: Shell, bot: Instance) -> None:
    """A table that came with an extension, say: it is searched, although nobody knows how to empty it."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE notes (instance_id uuid, owner text)")
        cursor.execute("INSERT INTO notes VALUES (%s, 'alice'), (%s, 'alice'), (%s, 'bob')", [bot.id] * 3)
    ran = shell("forget", "--instance", "support-bot", "--owner", "alice", "--yes")
    assert (ran.code, ran.err) == (1, "Not everything went. Left of this owner: 2 rows. Run it again.\n")
    assert "Left of this owner, in every table of the instance: 2." in ran.out
    again = shell("forget", "--instance", "support-bot", "--owner", "alice", "--yes", "--json")
    assert (again.code, again.json["left"]) == (1, 2)


def test_nothing_to_forget(shell: Shell, bot: Instance) -> None:
    ran = shell("forget", "--instance", "support-bot", "--owner", "nobody")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "There was nothing to forget.")


def test_asks_a_person(shell: Shell, bot: Instance) -> None:
    said_no = shell("forget", "--instance", "support-bot", "--owner", "alice", stdin=b"y\n", person=True)
    assert said_no.code == 1
    assert "2 memories" in said_no.err
    assert "Nothing was forgotten." in said_no.err
    assert Memory.objects.count() == 3
    assert shell("forget", "--instance", "support-bot", "--owner", "alice", stdin=b"alice\n", person=True).code == 0
    assert Memory.objects.count() == 1


def test_asks_nobody_without_a_terminal(shell: Shell, bot: Instance) -> None:
    ran = shell("forget", "--instance", "support-bot", "--owner", "alice")
    assert (ran.code, ran.err) == (2, "There is nobody to ask: add --yes to forget.\n")
    assert Memory.objects.count() == 3


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--instance", "no-bot", "--owner", "alice"], 3, "There is no instance “no-bot”."),
        (["--instance", "support-bot", "--owner", " "], 2, "--owner: This may not be empty."),
        (["--instance", "support-bot", "--owner", "x" * 201], 2, "--owner: At most 200 characters"),
        (["--instance", "support-bot"], 2, "--owner"),
    ],
)
def test_wrong_usage(shell: Shell, bot: Instance, words: list[str], code: int, says: str) -> None:
    ran = shell("forget", *words, "--yes")
    assert ran.code == code
    assert says in ran.err
    assert Memory.objects.count() == 3
