"""The memories that are injected into every prompt because of their role."""

from dataclasses import dataclass

from django.db.models import Case, Value, When

from accounts.access import Scope
from memories.filters import Filters, matching
from memories.models import Memory
from memories.vocabulary import Role
from memoryconsole.reading import columns_of, rows_found

ROLES = (Role.IDENTITY, Role.LESSON, Role.DECISION, Role.CONTEXT)
WARN_AT = 0.8


@dataclass(frozen=True, slots=True)
class Injected:
    memories: list[Memory]
    """Ordered by role, then pinned first, then newest first."""
    is_capped: bool = False
    warning: str = ""

    def of(self, role: Role) -> list[Memory]:
        return [memory for memory in self.memories if memory.role == role]


def always_injected(scope: Scope, filters: Filters, *, cap: int) -> Injected:
    if not cap:
        return Injected([])
    # One more than the cap, to see whether there are more.
    found = _narrowed(scope, filters, cap + 1) if filters.narrowing() else _newest(scope, cap + 1)
    return Injected(found[:cap], len(found) > cap, _warning(len(found), cap))


def _newest(scope: Scope, most: int) -> list[Memory]:
    """Reads two index ranges per role, however many memories there are. Raw SQL, because it runs before every turn."""
    owner = scope.private_memories_of
    each = (scope.instance.id, owner, owner, most)
    rows = rows_found(Memory, NEWEST, (scope.instance.id, list(ROLES), *each, *each, most))
    return sorted(rows, key=lambda memory: (ROLES.index(Role(memory.role)), not memory.pinned, -memory.id.int))


# `pinned` is literal, because PostgreSQL does not use the partial index of pinned memories with a parameter.
_OF_ROLE = """
    SELECT m.id, m.pinned FROM memories_memory m
    WHERE m.instance_id = %s::uuid AND m.listed AND m.role = r.role AND {which}
      AND (m.expires_at IS NULL OR m.expires_at > now())
      AND (%s::text IS NULL OR m.visibility <> 'private' OR m.owner = %s::text)
    ORDER BY m.id DESC LIMIT %s::bigint
"""
NEWEST = f"""
SELECT {columns_of(Memory, "m")} FROM memories_memory m WHERE m.instance_id = %s::uuid AND m.id IN (
    SELECT one.id FROM unnest(%s::text[]) WITH ORDINALITY AS r (role, turn)
    CROSS JOIN LATERAL (
        ({_OF_ROLE.format(which="m.pinned")}) UNION ALL ({_OF_ROLE.format(which="NOT m.pinned")})
    ) AS one
    ORDER BY r.turn, one.pinned DESC, one.id DESC LIMIT %s::bigint
)
"""


def _narrowed(scope: Scope, filters: Filters, most: int) -> list[Memory]:
    turn = Case(*(When(role=role, then=Value(n)) for n, role in enumerate(ROLES)))
    return list(matching(scope, filters).filter(role__in=ROLES).order_by(turn, "-pinned", "-id")[:most])


def _warning(number: int, cap: int) -> str:
    if number > cap:
        return (
            f"More than {cap} memories belong into every prompt; {cap} of them are considered, by role, the pinned "
            "ones first, then the newest. Give some of them the role reference or historical."
        )
    if number >= WARN_AT * cap:
        return f"{number} of at most {cap} memories that belong into every prompt are in use."
    return ""
