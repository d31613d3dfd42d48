"""Which memories of a file an instance has already, or must not have again."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.access import Scope
from memories.forgetting import fingerprint, forgotten_since
from memories.transfer.candidates import Candidate
from memories.transfer.report import Report
from memories.vocabulary import Status

# During an import, PostgreSQL's statistics still say that the instance is empty, so it would scan all of it rather than
# use an index. BETWEEN and ORDER BY make it use the right index for each row.
# Texts are only compared with memories that the importer may read, so that nobody can find out what others contain.
READABLE = "(%(reader)s::text IS NULL OR visibility <> 'private' OR owner = %(reader)s::text)"
UNEXPIRED = "(expires_at IS NULL OR expires_at > statement_timestamp())"
KNOWN_IDS = """
SELECT m.id FROM unnest(%(ids)s::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
    SELECT id FROM memories_memory
    WHERE instance_id = %(instance)s AND id BETWEEN wanted.id AND wanted.id ORDER BY id
) m
"""
KNOWN_KEYS = f"""
SELECT m.owner, m.key, m.comparable FROM unnest(%(owners)s::text[], %(keys)s::text[]) AS wanted (owner, key)
CROSS JOIN LATERAL (
    SELECT owner, key, CASE WHEN {READABLE} THEN content_hash ELSE '' END AS comparable FROM memories_memory
    WHERE instance_id = %(instance)s AND status = 'active' AND NOT key = ''
      AND owner = wanted.owner AND key BETWEEN wanted.key AND wanted.key AND {UNEXPIRED} ORDER BY key
) m
"""
KNOWN_TEXTS = f"""
SELECT m.content_hash, m.owner, m.last_seen_at = %(started)s FROM unnest(%(hashes)s::bytea[]) AS wanted (content_hash)
CROSS JOIN LATERAL (
    SELECT content_hash, owner, last_seen_at FROM memories_memory
    WHERE instance_id = %(instance)s AND content_hash BETWEEN wanted.content_hash AND wanted.content_hash
      AND {READABLE} AND {UNEXPIRED}
    ORDER BY content_hash
) m
"""


class Known:
    """The ids, keys and texts of a batch that the instance has already, and owners forgotten meanwhile."""

    def __init__(self, scope: Scope, candidates: Sequence[Candidate], started: datetime) -> None:
        parameters: dict[str, Any] = {
            "instance": scope.instance.id,
            "ids": [each.memory.id for each in candidates if each.has_own_id],
            "keys": [each.memory.key for each in candidates if each.memory.key],
            "owners": [each.memory.owner for each in candidates if each.memory.key],
            "hashes": list({each.text[0] for each in candidates}),
            "started": started,
            "reader": scope.private_memories_of,
        }
        self.ids = {id for (id,) in select(KNOWN_IDS, parameters)} if parameters["ids"] else set()
        holders = select(KNOWN_KEYS, parameters) if parameters["keys"] else []
        self.keys = {(owner, key): bytes(content_hash) for owner, key, content_hash in holders}
        # A file may contain the same text twice, with different ids. These rows are compared with earlier texts only.
        found = [((bytes(hash), owner), is_ours) for hash, owner, is_ours in select(KNOWN_TEXTS, parameters)]
        self.texts = {text for text, _ in found}
        self.earlier_texts = {text for text, is_from_this_file in found if not is_from_this_file}
        forgotten = forgotten_since(scope, started)
        owners = {each.memory.owner for each in candidates} if forgotten else ()
        self.forgotten = {owner for owner in owners if fingerprint(scope, owner) in forgotten}


def select(statement: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {name: value for name, value in parameters.items() if f"%({name})s" in statement})
        return list(cursor.fetchall())


def new_among(candidates: Sequence[Candidate], known: Known, report: Report) -> Iterator[Candidate]:
    """The candidates to store; the others are counted in the report."""
    for each in candidates:
        holder = known.keys.get(each.key) if each.memory.key and each.memory.status == Status.ACTIVE else None
        texts = known.earlier_texts if each.has_own_id else known.texts
        if each.memory.owner in known.forgotten:
            report.add_problem(each.line, {"owner": ["This person was forgotten after the file was handed in."]})
        elif each.memory.id in known.ids or holder == each.text[0]:
            report.existing += 1
        elif holder is not None:
            report.add_problem(each.line, {"key": ["Another memory has this key, and says something else."]})
        elif not each.memory.key and each.text in texts:
            report.existing += 1
        elif each.memory.expires_at is not None and each.memory.expires_at <= timezone.now():
            report.left_out += 1
        else:
            _remember(known, each)
            yield each


def _remember(known: Known, new: Candidate) -> None:
    known.ids.add(new.memory.id)
    known.texts.add(new.text)
    if new.memory.key and new.memory.status == Status.ACTIVE:
        known.keys[new.key] = new.text[0]
