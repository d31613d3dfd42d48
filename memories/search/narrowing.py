"""Which memories a search statement may find, as parts of its SQL."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from accounts.access import Scope
from memories.filters import Filters, matching_sql
from memories.search.query import Phrase, Query


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


def allowed_sql(scope: Scope, filters: Filters, query: Query, parameters: dict[str, Any]) -> str:
    """SQL for the ids that filters and the query's conditions leave; adds its values to the parameters."""
    named = matching_sql(scope, filters, parameters)
    if not query.has_conditions:
        return named
    parameters |= {
        "conditions_in": scope.instance.id,
        "conditions_language": scope.instance.language,
        "conditions_superseded": bool(filters.include_superseded),
    }
    conditions = [REQUIRED.format(wanted=_wanted(phrases, parameters)) for phrases in query.required]
    if query.excluded:
        conditions.append(EXCLUDED.format(wanted=_wanted(query.excluded, parameters)))
    return f"SELECT id FROM ({named}) AS filtered WHERE {' AND '.join(conditions)}"


# Conditions are about memories, not chunks: an excluded word may be in none of a memory's chunks, and its required
# phrases may be in different ones.
CONTAINED = """id IN (
    SELECT c.memory_id FROM memories_chunk c
    WHERE c.instance_id = %(conditions_in)s::uuid AND (c.live OR %(conditions_superseded)s::boolean)
      AND c.words @@ (SELECT {wanted})
)"""
# A phrase of stop words alone is no condition.
REQUIRED = f"({CONTAINED} OR numnode((SELECT {{wanted}})) = 0)"
EXCLUDED = f"NOT {CONTAINED}"
PHRASE = "phraseto_tsquery(%(conditions_language)s::text::regconfig, memories_folded(%({name})s::text))"


def _wanted(phrases: Sequence[Phrase], parameters: dict[str, Any]) -> str:
    """SQL for a text-search query that matches any of the phrases; adds its values to the parameters."""
    choices = []
    for phrase in phrases:
        name = f"phrase{len(parameters)}"
        parameters |= {name: phrase.words, f"{name}_pieces": " & ".join(phrase.pieces)}
        words = PHRASE.format(name=name)
        choices.append(f"({words} && %({name}_pieces)s::text::tsquery)" if phrase.pieces else words)
        if phrase.parts:
            parameters[f"{name}_parts"] = phrase.parts
            choices.append(PHRASE.format(name=f"{name}_parts"))
    return " || ".join(choices)
