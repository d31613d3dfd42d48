"""The memories that belong into every prompt: what the assistant is, what it learnt, decided, and is busy with."""

from dataclasses import dataclass

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
    """One index range per role, however many memories there are; one more than the cap, to know that there is more."""
    if not cap:
        return Injected([])
    rows = matching(scope, filters)
    parts = [rows.filter(role=role).order_by("-id")[: cap + 1] for role in ROLES]
    found = parts[0].union(*parts[1:], all=True)
    ordered = sorted(found, key=lambda memory: (ROLES.index(Role(memory.role)), -memory.id.int))
    return Injected(ordered[:cap], len(ordered) > cap, _warning(len(ordered), cap))


def _warning(number: int, cap: int) -> str:
    if number > cap:
        return (
            f"More than {cap} memories belong into every prompt; the newest {cap} by role are considered. "
            "Give some of them the role reference or historical."
        )
    if number >= WARN_AT * cap:
        return f"{number} of at most {cap} memories that belong into every prompt are in use."
    return ""
