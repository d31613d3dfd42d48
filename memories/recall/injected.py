"""The memories that belong into every prompt: what the assistant is, what it learnt, decided, and is busy with."""

from dataclasses import dataclass

from django.db.models import Case, Value, When
from django.db.models.expressions import RawSQL

from accounts.access import Scope
from memories.filters import Filters, matching
from memories.models import Memory
from memories.vocabulary import Role

ROLES = (Role.IDENTITY, Role.LESSON, Role.DECISION, Role.CONTEXT)
WARN_AT = 0.8


@dataclass(frozen=True, slots=True)
class Injected:
    memories: list[Memory]
    """By role, the newest first."""
    is_capped: bool = False
    warning: str = ""

    def of(self, role: Role) -> list[Memory]:
        return [memory for memory in self.memories if memory.role == role]


def always_injected(scope: Scope, filters: Filters, *, cap: int) -> Injected:
    if not cap:
        return Injected([])
    # One more than the cap, to know whether there is more.
    found = _narrowed(scope, filters, cap + 1) if filters.narrowing() else _newest(scope, cap + 1)
    return Injected(found[:cap], len(found) > cap, _warning(len(found), cap))


def _newest(scope: Scope, most: int) -> list[Memory]:
    """One index range per role, however many memories there are. Written out, as it is asked before every turn."""
    owner = scope.private_memories_of
    ids = RawSQL(
        """
        SELECT m.id FROM unnest(%s::text[]) WITH ORDINALITY AS r (role, turn)
        CROSS JOIN LATERAL (
            SELECT m.id FROM memories_memory m
            WHERE m.instance_id = %s::uuid AND m.listed AND m.role = r.role
              AND (m.expires_at IS NULL OR m.expires_at > now())
              AND (%s::text IS NULL OR m.visibility <> 'private' OR m.owner = %s::text)
            ORDER BY m.id DESC LIMIT %s::bigint
        ) AS m
        ORDER BY r.turn, m.id DESC LIMIT %s::bigint
        """,
        [list(ROLES), scope.instance.id, owner, owner, most, most],
    )
    rows = Memory.objects.filter(instance=scope.instance, id__in=ids)
    return sorted(rows, key=lambda memory: (ROLES.index(Role(memory.role)), -memory.id.int))


def _narrowed(scope: Scope, filters: Filters, most: int) -> list[Memory]:
    """A filter leaves it to the planner how to find them."""
    turn = Case(*(When(role=role, then=Value(n)) for n, role in enumerate(ROLES)))
    return list(matching(scope, filters).filter(role__in=ROLES).order_by(turn, "-id")[:most])


def _warning(number: int, cap: int) -> str:
    if number > cap:
        return (
            f"More than {cap} memories belong into every prompt; the newest {cap} by role are considered. "
            "Give some of them the role reference or historical."
        )
    if number >= WARN_AT * cap:
        return f"{number} of at most {cap} memories that belong into every prompt are in use."
    return ""
