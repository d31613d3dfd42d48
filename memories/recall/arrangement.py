"""Everything that may go into the block, and in which order it gets room. `docs/recall.md` explains the order."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from conversations.models import Conversation
from instances.models import Instance
from memories.models import Memory, Procedure
from memories.recall.injected import Injected
from memories.recall.prompt_block import Entry, Turn, Wording, date_of, short_name
from memories.recall.selection import Candidate
from memories.vocabulary import Role

# Lessons first get only half of the room, so that they do not push out what was found. They get the rest later.
LESSONS_FIRST = 0.5
# Within a label, injected memories come after the found ones.
INJECTED_AFTER = 1_000


@dataclass(frozen=True, slots=True)
class Arrangement:
    found: Sequence[Candidate]
    injected: Injected
    procedures: Sequence[Procedure] = ()
    conversation: Conversation | None = None

    def turns(self) -> list[Turn]:
        found = [memory_entry(one.memory, n, one.passage, one.origin) for n, one in enumerate(self.found)]
        found_by_id = {entry.id: entry for entry in found}
        always = {
            role: [
                found_by_id.get(memory.id) or memory_entry(memory, INJECTED_AFTER + n)
                for n, memory in enumerate(self.injected.of(role))
            ]
            for role in Role
        }
        return [
            Turn(always[Role.IDENTITY]),
            Turn(always[Role.LESSON], LESSONS_FIRST),
            Turn(found),
            Turn([procedure_entry(procedure, n) for n, procedure in enumerate(self.procedures)]),
            Turn([summary_entry(self.conversation)] if self.conversation else []),
            Turn(always[Role.LESSON]),
            Turn(always[Role.DECISION]),
            Turn(always[Role.CONTEXT]),
        ]


def memory_entry(memory: Memory, order: int, passage: str = "", origin: Instance | None = None) -> Entry:
    wordings = [Wording("content", memory.content)]
    if memory.summary:
        wordings.append(Wording("summary", memory.summary))
    if passage and passage != memory.content:
        wordings.append(Wording("excerpt", f"… {passage} …"))
    name = name_of(memory.id, memory.key, origin)
    return Entry(memory.id, memory.role.upper(), name, wordings, order, date_of(memory.occurred_at))


def name_of(id: UUID, key: str, origin: Instance | None = None) -> str:
    """The key or a short id, with the instance it comes from if another one shares it."""
    name = key or short_name(id)
    return f"{name} from {origin.slug}" if origin else name


def procedure_entry(procedure: Procedure, order: int = 0) -> Entry:
    steps = " ".join(f"{n}. {step}" for n, step in enumerate(procedure.steps, start=1))
    when = f"When: {procedure.trigger} Steps: " if procedure.trigger else ""
    return Entry(procedure.id, "PROCEDURE", procedure.name, [Wording("content", f"{when}{steps}")], order)


def summary_entry(conversation: Conversation) -> Entry:
    return Entry(conversation.id, "SUMMARY", "conversation", [Wording("content", conversation.summary)])
