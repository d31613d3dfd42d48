"""Which memories a search statement may find, as parts of that statement."""

from typing import NamedTuple


class Narrowing(NamedTuple):
    """Which memories may be found: a step of the statement, and a condition on the `{id}` of a memory.

    `all_of_them` is the same condition, for a step that has to look at nearly all of them.
    """

    step: str = ""
    condition: str = "true"
    all_of_them: str = "true"

    def of(self, id: str) -> str:
        return self.condition.replace("{id}", id)


def only(allowed: str) -> Narrowing:
    """Those that `allowed`, a query for ids, finds: looked up once."""
    return Narrowing(f"allowed AS MATERIALIZED ({allowed}),", "{id} IN (SELECT id FROM allowed)")


def each_if(allowed: str) -> Narrowing:
    """The same where it leaves tens of thousands: asked of every candidate, and of nobody else.

    A subquery for a single value, because EXISTS would be turned into a join with all of them.
    """
    each = f"(SELECT true FROM ({allowed}) AS passing WHERE passing.id = {{id}})"
    return Narrowing(condition=each, all_of_them=f"e.memory_id IN ({allowed})")


def without_private() -> Narrowing:
    """All but the few private memories of others."""
    return Narrowing(f"hidden AS MATERIALIZED ({HIDDEN}),", "{id} NOT IN (SELECT id FROM hidden)")


HIDDEN = """
    SELECT id FROM memories_memory
    WHERE instance_id = %(instance)s::uuid AND visibility = 'private' AND owner <> %(reader)s::text
"""
