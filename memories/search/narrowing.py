"""Which memories a search statement may find, as parts of its SQL."""

from typing import NamedTuple


class Narrowing(NamedTuple):
    """A step of the statement, and a condition on the `{id}` of a memory that uses it.

    `all_of_them` is the same condition, written for a step that reads nearly all memories.
    """

    step: str = ""
    condition: str = "true"
    all_of_them: str = "true"

    def of(self, id: str) -> str:
        return self.condition.replace("{id}", id)


def only(allowed: str) -> Narrowing:
    """The memories whose ids the query `allowed` returns. It runs once, and its ids are kept."""
    return Narrowing(f"allowed AS MATERIALIZED ({allowed}),", "{id} IN (SELECT id FROM allowed)")


def each_if(allowed: str) -> Narrowing:
    """The same for a query that returns tens of thousands: it is only asked about each candidate.

    It is a scalar subquery because PostgreSQL would turn EXISTS into a join with all of those rows.
    """
    each = f"(SELECT true FROM ({allowed}) AS passing WHERE passing.id = {{id}})"
    return Narrowing(condition=each, all_of_them=f"e.memory_id IN ({allowed})")


def without_private() -> Narrowing:
    """All memories except the private ones of others, of which there are few."""
    return Narrowing(f"hidden AS MATERIALIZED ({HIDDEN}),", "{id} NOT IN (SELECT id FROM hidden)")


HIDDEN = """
    SELECT id FROM memories_memory
    WHERE instance_id = %(instance)s::uuid AND visibility = 'private' AND owner <> %(reader)s::text
"""
