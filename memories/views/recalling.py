"""/recall: try a recall or look at a past one: the block, its size, what was left out, and why."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET
from django_htmx.http import replace_url

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, wants_fragment
from memories.audit import note_private_reads
from memories.filters import Filters, readable
from memories.models import Memory
from memories.owners import known_owners
from memories.recall.account import Account, DroppedLine, GivenLine
from memories.recall.golden import marks_for
from memories.recall.log import account_in, find_recall
from memories.recall.recalling import RecallRequest, recall
from memories.recall.replay import replay
from memories.recall.why import Why, why
from memories.search.hybrid import search
from memories.search.sharing import find_own_or_shared
from memories.views.recall_settings import KNOBS, changed_values, changes_for, in_words, knobs_for, settings_in
from memoryconsole.errors import Invalid, NotFound
from memoryconsole.ids import parse_id
from memoryconsole.inputs import read

SUGGESTED = 8
LONGEST_QUESTION = 4_000
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

MODES = {
    "hybrid": ("good", "Hybrid", "Words and meaning were looked for, and both rankings merged."),
    "keyword": ("warn", "Keyword only", "Only words were looked for."),
    "recency": ("warn", "Newest memories", "Nothing was found, so the newest memories were given."),
    "off": ("danger", "Memory is off", "Recall answers with nothing."),
}
REASONS = {
    "threshold": "Not similar enough",
    "rank": "Others are better",
    "decay": "Too old",
    "mmr": "Says the same as another",
    "budget": "No room left",
    "injected_cap": "Too many are always included",
    "visibility": "Private",
    "expired": "Expired",
    "superseded": "Superseded",
    "unreviewed": "Waits for review",
    "filter": "Filtered out",
    "deleted": "Deleted",
    "later": "Remembered later",
    "changed": "Changed since",
    "off": "Memory is off",
    "found": "Found",
    "recent": "Among the newest",
    "injected": "Always included",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A memory that was considered. `memory` is None if it was deleted or the reader may not see it."""

    line: GivenLine | DroppedLine
    memory: Memory | None
    title: str
    detail: str = ""
    has_changed: bool = False
    mark: bool | None = None
    is_own: bool = False
    """Only memories of this instance can be marked for golden queries, not shared ones."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A memory's part of the budget, in thousandths."""

    start: float
    width: float
    role: str
    title: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A recall as the page shows it, tried or real."""

    account: Account
    context: str
    given: list[Row]
    dropped: list[Row]
    is_complete: bool = True

    @property
    def mode(self) -> tuple[str, str, str]:
        return MODES[self.account.mode]

    @property
    def found(self) -> list[Row]:
        """The found memories, best first; the block is ordered by role."""
        ranked = {row.line.rank: row for row in self.given if isinstance(row.line, GivenLine) and row.line.rank}
        return [ranked[rank] for rank in sorted(ranked)]

    @property
    def always(self) -> list[Row]:
        return [row for row in self.given if isinstance(row.line, GivenLine) and row.line.rank is None]

    @property
    def share(self) -> int:
        return round(100 * self.account.tokens / self.account.settings.token_budget)

    @property
    def segments(self) -> list[Segment]:
        found: list[Segment] = []
        start = 0.0
        for row in self.given:
            assert isinstance(row.line, GivenLine)
            width = 1000 * row.line.tokens / self.account.settings.token_budget
            name = row.memory.content[:60] if row.memory else "deleted"
            role = row.memory.role if row.memory else ""
            found.append(Segment(round(start, 1), round(width, 1), role, f"{row.line.tokens} tokens: {name}"))
            start += width
        return found


@dataclass(frozen=True, slots=True)
class Question:
    """The question why a memory was recalled or not: the typed text, the memories it finds, and the answer."""

    text: str
    suggestions: Sequence[Memory] = ()
    answer: Why | None = None
    content: str = ""
    title: str = ""
    details: Sequence[str] = ()
    mark: bool | None = None
    problem: str = ""


@require_GET
@about_instance
def playground(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    wanted, problem = _read_request(request.GET)
    has_question = bool(request.GET.get("query", "").strip())
    picture = _tried(scope, wanted) if wanted and has_question else None
    account = picture.account if picture else None
    context = {
        "picture": picture,
        "question": _question(scope, request.GET, account),
        "typed": request.GET.get("query", ""),
        "user_id": request.GET.get("userId", ""),
        "knobs": knobs_for(scope.instance, request.GET, problem),
        "changes": changes_for(scope.instance, wanted) if wanted else [],
        "problem": in_words(problem),
        "owners": known_owners(scope),
        "here": _address(scope, request.GET, wanted),
        "kept": _kept(scope, request.GET, wanted),
        "is_foreign": _is_foreign(scope, request.GET.get("userId", "")),
    }
    if not wants_fragment(request):
        response = render(request, "recall/playground.html", context)
    else:
        response = replace_url(render(request, "recall/playground.html#tried", context), str(context["here"]))
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_GET
@about_instance
def recall_users(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    """Completion for the end user."""
    return render(request, "recall/_owners.html", {"owners": known_owners(scope, request.GET.get("userId", ""))})


@require_GET
@about_instance
def recall_detail(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    row = find_recall(scope, id)
    account = account_in(row)
    context = {
        "recall": row,
        "picture": _replayed(scope, account),
        "question": _question(scope, request.GET, account),
        "here": request.get_full_path(),
        "kept": QueryDict(f"instance={scope.instance.slug}"),
        "typed": account.query,
        "user_id": account.user_id,
    }
    return render(request, "recall/detail.html", context)


def _read_request(query: QueryDict) -> tuple[RecallRequest | None, Invalid | None]:
    values: dict[str, Any] = settings_in(query)
    values |= {"query": query.get("query", "")[:LONGEST_QUESTION], "userId": query.get("userId", "")}
    try:
        return read(RecallRequest, values), None
    except Invalid as problem:
        return None, problem


def _tried(scope: Scope, request: RecallRequest) -> Picture:
    recalled = recall(scope, request, log=False)
    account = recalled.account(request)
    memories = {one.memory.id: one.memory for one in recalled.memories}
    memories |= {one.memory.id: one.memory for one in recalled.dropped}
    return _picture(scope, account, recalled.context, memories)


def _replayed(scope: Scope, account: Account) -> Picture:
    shown = replay(scope, account)
    given = {one.line.memory_id: one.memory for one in shown.memories if one.memory}
    ids = [line.memory_id for line in account.dropped]
    dropped = {memory.id: memory for memory in readable(scope).filter(id__in=ids)} if ids else {}
    changed = {one.line.memory_id for one in shown.memories if one.has_changed}
    return _picture(scope, account, shown.context, dropped | given, changed=changed, is_complete=shown.is_complete)


def _picture(
    scope: Scope,
    account: Account,
    context: str,
    memories: Mapping[UUID, Memory],
    *,
    changed: set[UUID] | None = None,
    is_complete: bool = True,
) -> Picture:
    note_private_reads(scope, memories.values())
    marks = marks_for(scope, account.query, account.user_id)

    def row(line: GivenLine | DroppedLine) -> Row:
        cause, detail = (line.why, "") if isinstance(line, GivenLine) else (line.reason, line.detail)
        memory = memories.get(line.memory_id)
        return Row(
            line=line,
            memory=memory,
            title=REASONS.get(cause, cause),
            detail=_in_words(detail, memories),
            has_changed=line.memory_id in (changed or ()),
            mark=marks.get(line.memory_id),
            is_own=memory is not None and memory.instance_id == scope.instance.id,
        )

    return Picture(
        account, context, [row(line) for line in account.given], [row(line) for line in account.dropped], is_complete
    )


def _in_words(detail: str, memories: Mapping[UUID, Memory]) -> str:
    """The sentence with ids replaced by the texts of memories."""

    def text(match: re.Match[str]) -> str:
        memory = memories.get(UUID(match[0]))
        return f"“{memory.content[:60]}{'…' if len(memory.content) > 60 else ''}”" if memory else "another one"

    return ID.sub(text, detail)


def _question(scope: Scope, query: QueryDict, account: Account | None) -> Question:
    """In the query, `memory` is the id of a memory; `ask` is typed text to find one, or an id."""
    text = query.get("ask", "").strip()
    raw_id = query.get("memory", "") or (text if parse_id(text) else "")
    if not raw_id:
        found = search(scope, text, Filters(include_superseded=True), limit=SUGGESTED, typing=True).hits if text else []
        note_private_reads(scope, [hit.memory for hit in found])
        return Question(text, [hit.memory for hit in found])
    if account is None:
        return _waiting(scope, text, raw_id)
    try:
        return _answered(scope, account, text, why(scope, account, raw_id))
    except NotFound as absent:
        return Question(text, problem=absent.detail)


def _waiting(scope: Scope, text: str, raw_id: str) -> Question:
    """A memory was chosen, but nothing has been recalled yet."""
    try:
        return Question(text, content=find_own_or_shared(scope, raw_id)[0].content)
    except NotFound as absent:
        return Question(text, problem=absent.detail)


def _answered(scope: Scope, account: Account, text: str, answer: Why) -> Question:
    """The answer. An expired memory is explained without its text."""
    chosen = {memory.id: memory for memory in readable(scope).filter(id__in=[line.memory_id for line in account.given])}
    return Question(
        text=text,
        answer=answer,
        content=answer.memory.content if answer.memory else "",
        title=REASONS.get(answer.cause, answer.cause),
        details=[_in_words(cause.detail, chosen) for cause in answer.causes],
        mark=marks_for(scope, account.query, account.user_id).get(answer.memory_id),
    )


def _address(scope: Scope, query: QueryDict, wanted: RecallRequest | None) -> str:
    address = _kept(scope, query, wanted).copy()
    for name in ("memory", "ask"):
        if value := query.get(name, "").strip():
            address[name] = value
    return f"/recall?{address.urlencode()}"


def _kept(scope: Scope, query: QueryDict, wanted: RecallRequest | None) -> QueryDict:
    """The parameters of the request, without settings that are the instance's anyway."""
    kept = QueryDict(mutable=True)
    kept["instance"] = scope.instance.slug
    unchanged = KNOBS.keys() - changed_values(scope.instance, wanted).keys() if wanted else set()
    for name in ("query", "userId", *KNOBS):
        if (value := query.get(name, "").strip()) and name not in unchanged:
            kept[name] = value
    return kept


def _is_foreign(scope: Scope, user_id: str) -> bool:
    """Whether the reader may not see private memories of this user."""
    return bool(user_id) and scope.private_memories_of not in (None, user_id)
