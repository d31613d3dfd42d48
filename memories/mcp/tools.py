"""The tools of an agent on the memory of one instance. Each has an input model, a description and a function.

A tool gets its scope from the connection and cannot choose the instance. Its answer is data, with the texts of memories
as values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Generic, TypeVar

from django.db.models import QuerySet
from pydantic import AfterValidator, ConfigDict, Field

from accounts.access import Scope
from instances.models import Instance
from memories import store
from memories.deletion import delete_key
from memories.draft import Content, Importance, MemoryDraft, Name, Reason
from memories.filters import Filters, readable, spelt_out
from memories.listing import list_from
from memories.models import Memory
from memories.recall.recalling import RecallRequest, recall
from memories.recall.request import MAX_QUESTION
from memories.role_hints import role_hint
from memories.search.hybrid import Hit, search
from memories.search.query import read_query
from memories.vocabulary import Category, Role, Status, category_named, role_named
from memoryconsole.errors import Conflict, Invalid
from memoryconsole.inputs import Input, Number, Text, read, tidy_schema
from memoryconsole.presenting import when

SOURCE = "mcp"
LONGEST_LIST = 100
NAMED_OWNERS = 3
# The condition of the unique index of keys.
HOLDS_ITS_KEY = spelt_out("status = 'active' AND NOT key = ''")

Json = dict[str, Any]


def _known_category(word: str) -> str:
    category_named(word)
    return word


def _known_role(word: str) -> str:
    role_named(word)
    return word


# Only checked here. The draft or the filters resolve aliases, because one may stand for a category and a role at once.
CategoryName = Annotated[Text, AfterValidator(_known_category), Field(description=", ".join(Category.values))]
TypeName = Annotated[
    Text, AfterValidator(_known_role), Field(description=f"How prompts use it: {', '.join(Role.values)}, or an alias.")
]
Key = Annotated[Name, Field(min_length=1, description="A short name for it, for example “deploy-lesson”.")]
Question = Annotated[Text, Field(min_length=1, max_length=2_000, description="A question or words.")]


class ToolInput(Input):
    """Tools are called with snake_case names."""

    model_config = ConfigDict(alias_generator=None)


class Save(ToolInput):
    key: Key
    content: Annotated[Content, Field(description="What to remember, in a sentence or a few.")]
    type: TypeName | None = None
    category: CategoryName | None = None
    importance: Importance | None = None
    supersede_reason: Annotated[
        Reason | None,
        Field(description="Why what is saved under this key is wrong or out of date. Needed when the key is taken."),
    ] = None


class Search(ToolInput):
    query: Question
    max_results: Annotated[Number, Field(ge=1, le=50)] = 5
    category: CategoryName | None = None


class List(ToolInput):
    type: TypeName | None = None
    category: CategoryName | None = None


class Recall(ToolInput):
    query: Annotated[
        Text, Field(min_length=1, max_length=MAX_QUESTION, description="The message that is about to be answered.")
    ]


class Delete(ToolInput):
    key: Key


T = TypeVar("T", bound=ToolInput)


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is for hosts that do not pass the structured content to the model."""

    structured: Json
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tool(Generic[T]):
    name: str
    title: str
    description: str
    input: type[T]
    function: Callable[[Scope, T], Answer]
    reads: bool = True
    destroys: bool = False

    @property
    def schema(self) -> Json:
        described: Json = tidy_schema(self.input.model_json_schema())
        return described

    def call(self, scope: Scope, arguments: Mapping[str, Any]) -> Answer:
        """Call the tool without access to private memories, because an agent does not say for whom it asks."""
        return self.function(scope.reading_for(""), read(self.input, arguments))


def save(scope: Scope, wanted: Save) -> Answer:
    owner = _owner_of_key(readable(scope).filter(HOLDS_ITS_KEY), wanted.key)
    fields = {"dedupe": "reject", "source": SOURCE, "owner": owner, **wanted.model_dump(exclude_none=True)}
    try:
        saved = store.save(scope, read(MemoryDraft, fields))
    except Conflict as conflict:
        raise _taken(conflict) from None
    answer: Json = {"event": saved.event, "memory": memory_json(saved.memory)}
    if saved.redacted:
        answer["redacted"] = list(saved.redacted)
    if hint := role_hint(saved.memory.content, saved.memory.role):
        answer["hints"] = [{"field": "type", "value": hint.role, "reason": hint.reason}]
    return Answer(answer)


def _owner_of_key(rows: QuerySet[Memory], key: str) -> str:
    """The owner of the memory with this key; empty if it has none or does not exist. Raises if there are several."""
    owners = list(rows.filter(key=key).order_by("owner").values_list("owner", flat=True).distinct()[:NAMED_OWNERS])
    if "" in owners or not owners:
        return ""
    if len(owners) > 1:
        named = ", ".join(f"“{owner}”" for owner in owners)
        raise Conflict(
            f"Several end users have a memory under the key “{key}”, among them {named}; nothing was done. "
            "memory_search finds what they say. Choose another key.",
            code="key_taken",
        )
    return owners[0]


def _taken(conflict: Conflict) -> Conflict:
    """The same conflict for an agent, with the memory that has the key."""
    holder = conflict.extra.get("memory")
    if holder is None:
        return conflict
    return Conflict(
        f"The key “{holder.key}” is taken; nothing was saved. Read what it says now. If that is wrong or out of date, "
        "save again with supersede_reason; otherwise choose another key.",
        code=conflict.code,
        extra={"memory": memory_json(holder)},
    )


def find(scope: Scope, wanted: Search) -> Answer:
    if read_query(wanted.query).is_empty:
        raise Invalid({"query": ["Say what to look for."]})
    filters = _filters(category=wanted.category, includeSuperseded=True)
    found = search(scope, wanted.query, filters, limit=wanted.max_results)
    answer: Json = {"searchMode": found.mode, "total": found.total, "results": [hit_json(hit) for hit in found.hits]}
    if found.reason:
        answer["reason"] = found.reason
    return Answer(answer)


def list_all(scope: Scope, wanted: List) -> Answer:
    filters = _filters(category=wanted.category, role=wanted.type)
    found = list_from(scope, filters, limit=LONGEST_LIST)
    answer: Json = {"total": found.total, "memories": [memory_json(memory) for memory in found.memories]}
    if found.total > len(found.memories):
        answer["note"] = f"These are the {len(found.memories)} newest of {found.total}; memory_search finds the others."
    return Answer(answer)


def _filters(**values: Any) -> Filters:
    return read(Filters, {name: value for name, value in values.items() if value is not None})


def recall_block(scope: Scope, wanted: Recall) -> Answer:
    recalled = recall(scope, RecallRequest(query=wanted.query))
    answer: Json = {
        "context": recalled.context,
        "tokens": recalled.tokens,
        "searchMode": recalled.mode,
        "memories": [
            {"id": str(given.memory.id), "key": given.memory.key or None, **_shared_from(given.origin)}
            for given in recalled.memories
        ],
    }
    if recalled.reason:
        answer["reason"] = recalled.reason
    if recalled.warnings:
        answer["warnings"] = recalled.warnings
    return Answer(answer, recalled.context)


def delete(scope: Scope, wanted: Delete) -> Answer:
    owner = _owner_of_key(readable(scope), wanted.key)
    receipt = asdict(delete_key(scope, wanted.key, owner=owner))
    return Answer({**receipt, "owner": owner} if owner else receipt)


def memory_json(memory: Memory) -> Json:
    """A memory for an agent: less than in the API, because every token costs."""
    return {
        "id": str(memory.id),
        "key": memory.key or None,
        "content": memory.content,
        "type": memory.role,
        "category": memory.category,
        "importance": memory.importance,
        **({"owner": memory.owner} if memory.owner else {}),
        "superseded": memory.status == Status.SUPERSEDED,
        "updatedAt": when(memory.updated_at),
    }


def hit_json(hit: Hit) -> Json:
    """A hit with the text that matched. If that is superseded, the current text is added."""
    answer = memory_json(hit.memory)
    answer |= {"content": hit.found.content or hit.memory.content, "score": round(hit.found.final, 6)}
    answer |= _shared_from(hit.origin)
    if hit.version:
        reason = hit.version.reason or None
        answer |= {"superseded": True, "supersedeReason": reason, "currentContent": hit.memory.content}
    elif hit.memory.status == Status.SUPERSEDED:
        answer |= {"supersedeReason": hit.memory.supersede_reason or None}
    return answer


def _shared_from(origin: Instance | None) -> Json:
    """The instance that shares the memory, if it belongs to another one."""
    return {"sharedFrom": origin.slug} if origin else {}


ALL: Sequence[Tool[Any]] = [
    Tool(
        "memory_save",
        "Save a memory",
        "Remember something under a key. A key that is taken is rejected, with what is saved there now, unless "
        "supersede_reason says why that is out of date; the old text is kept as an earlier version.",
        Save,
        save,
        reads=False,
    ),
    Tool(
        "memory_search",
        "Search memories",
        "Find memories by words and meaning, the best first. Results marked superseded are no longer true; "
        "they come with the reason and, where there is one, the current text.",
        Search,
        find,
    ),
    Tool(
        "memory_list",
        "List memories",
        f"The memories that are current, newest first, at most {LONGEST_LIST}.",
        List,
        list_all,
    ),
    Tool(
        "memory_recall",
        "Recall for a message",
        "Everything worth knowing before answering a message, as one block to put before it: what always holds, and "
        "what fits the message, within a budget of tokens.",
        Recall,
        recall_block,
    ),
    Tool(
        "memory_delete",
        "Delete a memory",
        "Delete what is saved under a key for good, its earlier versions included. To correct a memory, save it "
        "again with supersede_reason instead.",
        Delete,
        delete,
        reads=False,
        destroys=True,
    ),
]
TOOLS = {tool.name: tool for tool in ALL}
