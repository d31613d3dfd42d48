"""Finding what is left of a person in an instance's tables after they were forgotten.

Tables and columns are read from the information schema, so that tables added later are searched too.
"""

import re
from collections import defaultdict
from collections.abc import Mapping

from django.db import connection

from accounts.access import Scope

COLUMNS = """
SELECT c.table_name, c.column_name, c.data_type
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'
  AND c.data_type IN ('text', 'character varying', 'json', 'jsonb', 'ARRAY')
  AND c.table_name IN (SELECT table_name FROM information_schema.columns
                       WHERE table_schema = current_schema() AND column_name = 'instance_id')
ORDER BY c.table_name, c.ordinal_position
"""
# Made from other tables, so their text would be counted twice.
DERIVED = {"memories_chunk", "memories_wordfrequency"}
KINDS = {
    "memories_memory": "memories",
    "memories_memoryversion": "versions",
    "memories_recall": "recalls",
    "memories_goldenquery": "golden",
    "memories_job": "jobs",
    "memories_procedure": "procedures",
    "memories_attachment": "attachments",
    "memories_auditentry": "audit",
    "conversations_conversation": "conversations",
    "conversations_message": "messages",
}
# Columns that say who did something, not whom it is about.
ACTORS = {"actor"}


def count_owned(scope: Scope, owner: str) -> dict[str, int]:
    """The number of rows that have this owner, by kind."""
    return {
        KINDS.get(table, table): n
        for table, columns in _columns().items()
        if "owner" in columns and (n := _count(scope, table, '"owner" = %(value)s', owner))
    }


def count_mentions(scope: Scope, text: str) -> dict[str, int]:
    """The number of rows that contain the text as a whole word, ignoring case, by kind."""
    pattern = rf"(?<![[:alnum:]]){re.escape(text)}(?![[:alnum:]])"
    found = {}
    for table, columns in _columns().items():
        conditions = [f'"{name}"::text ~* %(value)s' for name in columns if name not in ACTORS]
        if table not in DERIVED and conditions and (n := _count(scope, table, " OR ".join(conditions), pattern)):
            found[KINDS.get(table, table)] = n
    return found


def refresh_statistics() -> None:
    """Run ANALYZE, because the planner's statistics still contain owners, tags and words of deleted rows."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE " + ", ".join(f'"{table}"' for table in _columns()))


def _columns() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        for table, column, _ in cursor.fetchall():
            found[table].append(column)
    return found


def _count(scope: Scope, table: str, condition: str, value: str) -> int:
    with connection.cursor() as cursor:
        sql = f'SELECT count(*) FROM "{table}" WHERE instance_id = %(instance)s AND ({condition})'
        cursor.execute(sql, {"instance": scope.instance.id, "value": value})
        return int(cursor.fetchone()[0])
