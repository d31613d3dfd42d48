"""What the database itself enforces about the tables of an instance."""

import pytest
from django.db import IntegrityError, connection, transaction

from memories.models import Chunk, Memory, MemoryVersion
from memoryconsole.ids import uuid7
from tests.factories import make_conversation, make_instance, make_memory

pytestmark = pytest.mark.django_db

OWNED = """
SELECT table_name FROM information_schema.columns
WHERE table_schema = 'public' AND column_name = 'instance_id'
"""
# Access rights are not data of an instance: these tables are looked up by user or key.
NOT_OWNED = {"accounts_membership", "accounts_apikey_instances"}

INDEXES = """
SELECT t.relname, i.relname, a.attname FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
WHERE t.relname = ANY(%s)
"""

FOREIGN_KEYS = """
SELECT conname, confrelid::regclass::text, (SELECT array_agg(attname ORDER BY ordinality) FROM unnest(conkey)
    WITH ORDINALITY AS k(n, ordinality) JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k.n)
FROM pg_constraint WHERE contype = 'f' AND conrelid::regclass::text = ANY(%s)
"""


def rows(statement: str, *parameters: object) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall()


def owned_tables() -> list[str]:
    return [name for (name,) in rows(OWNED) if name not in NOT_OWNED]


def test_every_table_of_an_instance_is_known() -> None:
    assert {"memories_memory", "memories_memoryversion", "memories_chunk", "memories_embedding", "memories_procedure",
            "memories_attachment", "memories_recall", "memories_recalluse", "memories_goldenquery",
            "memories_goldenmark", "memories_auditentry", "conversations_conversation",
            "conversations_message"} <= set(owned_tables())  # fmt: skip


def test_the_instance_leads_every_index() -> None:
    found = rows(INDEXES, owned_tables())
    assert len(found) > 25
    assert [(table, index) for table, index, first in found if first != "instance_id"] == []


def test_the_instance_leads_every_foreign_key() -> None:
    found = rows(FOREIGN_KEYS, owned_tables())
    assert len(found) > 15
    for name, target, columns in found:
        assert columns[0] == "instance_id", name
        assert len(columns) == (1 if target == "instances_instance" else 2), name


PRIMARY_KEYS = """
SELECT t.relname, bool_and(k.indexrelid >= x.indexrelid) FROM pg_index x
JOIN pg_class t ON t.oid = x.indrelid JOIN pg_index k ON k.indrelid = t.oid AND k.indisprimary
WHERE t.oid IN (SELECT confrelid FROM pg_constraint WHERE contype = 'f' AND array_length(conkey, 1) = 2)
  AND x.indpred IS NULL  -- a foreign key cannot be checked in a partial index
GROUP BY t.relname
"""


def test_the_primary_key_of_what_is_referred_to_was_made_last() -> None:
    """Before the first ANALYZE the newest of equally good indexes is used: see `tenancy.key_made_last`."""
    assert dict(rows(PRIMARY_KEYS)) == dict.fromkeys(
        [
            "memories_memory",
            "memories_memoryversion",
            "memories_chunk",
            "memories_goldenquery",
            "memories_procedure",
            "conversations_conversation",
        ],
        True,
    )


def test_a_row_cannot_belong_to_another_instances_row() -> None:
    ours, theirs = make_instance(), make_instance()
    memory = make_memory(theirs)
    conversation = make_conversation(theirs)
    own = make_memory(ours)
    with pytest.raises(IntegrityError), transaction.atomic():
        Chunk.objects.create(
            instance=ours, memory_id=memory.id, position=0, live=True, language="english", content="x",
            text_hash=b"x", length=1,
        )  # fmt: skip
    with pytest.raises(IntegrityError), transaction.atomic():
        Memory.objects.filter(pk=own.pk).update(source_conversation_id=conversation.id)


@pytest.mark.parametrize(
    "wrong",
    [
        {"category": "opinion"},
        {"importance": 0},
        {"importance": 11},
        {"role": "boss"},
        {"visibility": "world"},
        {"status": "deleted"},
        {"confidence": 1.5},
        {"content": ""},
    ],
)
def test_the_database_refuses_what_the_form_refuses(wrong: dict[str, object]) -> None:
    memory = make_memory(make_instance())
    with pytest.raises(IntegrityError), transaction.atomic():
        Memory.objects.filter(pk=memory.pk).update(**wrong)


def test_one_active_memory_per_key_and_owner() -> None:
    instance = make_instance()
    memory = make_memory(instance, key="renewal")
    make_memory(instance, key="renewal", owner="alice")
    make_memory(make_instance(), key="renewal")
    twin = Memory.objects.get(pk=memory.pk)
    twin.id = uuid7()
    with pytest.raises(IntegrityError), transaction.atomic():
        twin.save(force_insert=True)


def test_deleting_a_memory_takes_its_parts_along() -> None:
    instance = make_instance()
    memory = make_memory(instance, key="k")
    make_memory(instance, "Something else", key="k")
    assert MemoryVersion.objects.filter(instance=instance, memory_id=memory.id).count() == 1
    Memory.objects.filter(pk=memory.pk).delete()
    assert MemoryVersion.objects.filter(instance=instance).count() == 0
