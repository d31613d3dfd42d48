"""/memory/new and /memory/<id>: create, read, correct, pin, delete one memory."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import Scope, instances_of
from accounts.pages import ConsoleRequest, about_instance, render_part, seen_in, wants_fragment
from conversations.models import Conversation
from conversations.store import conversations_by_id
from instances.models import Instance
from instances.warnings import warnings_for
from memories.attachments import attachments_of
from memories.audit import note_private_reads
from memories.changing_many import change_many
from memories.deletion import Receipt, delete_memory, parts_of
from memories.draft import MemoryChanges
from memories.embedding.embedder import model_of
from memories.embedding.offline import MODEL as OFFLINE
from memories.filters import matching, may_read, readable
from memories.forms.editing import MemoryForm, values_of
from memories.forms.fields import typed_tags
from memories.history import steps
from memories.links import messages_of
from memories.models import Memory
from memories.role_hints import role_hint
from memories.search.sharing import find_own_or_shared
from memories.search.similar import similar
from memories.store import Saved, change, credentials_in, find_memory, save
from memories.tags import known_tags
from memories.versions import VERSIONED, history
from memories.views.listing import filters_in
from memories.vocabulary import EmbeddingState, Role
from memoryconsole.counting import counted
from memoryconsole.errors import Conflict, Invalid
from memoryconsole.forms import add_problem
from memoryconsole.inputs import read

SIMILAR = 5
# The lowest cosines of memories that are shown as similar. With hashed vectors, unrelated texts are close to zero.
SIMILAR_FROM, SIMILAR_FROM_OFFLINE = 0.3, 0.15
VERSIONS = 3


@require_http_methods(["GET", "POST"])
@about_instance
def memory_new(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    form = MemoryForm(request.POST or None, initial=_initial(request.GET), **_suggestions(scope))
    holder = None
    if request.method == "POST" and form.is_valid() and (draft := form.draft()):
        try:
            saved = save(scope, draft)
        except Invalid as problem:
            add_problem(form, problem)
        except Conflict as problem:
            form.add_error("key", "Another memory has this key. Correct that one instead, or choose another key.")
            holder = problem.extra.get("memory")
            note_private_reads(scope, [holder] if holder else [])
        else:
            messages.success(request, _ready(request, scope, saved))
            return redirect(came_from(request, scope))
    context = {
        "form": form,
        "holder": holder,
        "warnings": warnings_for(scope.instance),
        "list_url": came_from(request, scope),
        "back": request.GET.urlencode(),
    }
    return render(request, "memories/new.html", context)


@require_GET
@about_instance
def memory_detail(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    memory, origin = find_own_or_shared(scope, id)
    if origin != scope.instance:
        return _shared_detail(request, scope, memory, origin)
    conversation_id = memory.source_conversation_id
    latest = list(history(scope, memory)[: VERSIONS + 1])
    context = {
        "memory": memory,
        "conversation": conversations_by_id(scope, [conversation_id]).get(conversation_id),
        "successor": _successor(scope, memory),
        "steps": steps(scope, memory, latest[:VERSIONS]),
        "has_more_versions": len(latest) > VERSIONS,
        "messages_said": messages_of(scope, memory),
        "attachments": list(attachments_of(scope, memory)),
        "similar": _similar(scope, memory),
        "has_provider": bool(model_of(scope.instance)),
        "known_tags": known_tags(scope),
        "hint": role_hint(memory.content, memory.role),
        "list_url": came_from(request, scope),
        "back": request.GET.urlencode(),
    }
    return render(request, "memories/detail.html", context)


def _successor(scope: Scope, memory: Memory) -> Memory | None:
    """The memory that superseded it, if the reader may see that one."""
    found = readable(scope).filter(id=memory.superseded_by_id).first() if memory.superseded_by_id else None
    note_private_reads(scope, [found] if found else [])
    return found


def _similar(scope: Scope, memory: Memory) -> list[tuple[Memory, float]]:
    """The nearest memories, without those that are not really similar."""
    if memory.embedding != EmbeddingState.READY:
        return []
    least = SIMILAR_FROM_OFFLINE if scope.instance.embedding_model == OFFLINE else SIMILAR_FROM
    return [(other, cosine) for other, cosine in similar(scope, memory, SIMILAR) if cosine >= least]


def _shared_detail(request: ConsoleRequest, scope: Scope, memory: Memory, origin: Instance) -> HttpResponse:
    """A memory that another instance shares: read-only, with a link for those who may open that instance."""
    may_open = instances_of(scope.actor).filter(id=origin.id).exists()
    context = {"memory": memory, "origin": origin, "may_open": may_open, "list_url": came_from(request, scope)}
    return render(request, "memories/shared.html", context)


@require_http_methods(["GET", "POST"])
@about_instance
def memory_edit(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    memory = find_memory(scope, id)
    form = MemoryForm(request.POST or None, initial=values_of(memory), **_suggestions(scope))
    is_outdated = False
    if request.method == "POST" and form.is_valid() and (changes := form.changes()):
        try:
            changed = change(scope, id, changes, seen=seen_in(request))
        except Invalid as problem:
            add_problem(form, problem)
        except Conflict as problem:
            is_outdated = problem.code == "changed_meanwhile"
            form.add_error(None if is_outdated else "key", problem.detail)
        else:
            messages.success(request, _saved(memory, changed) + _redacted(credentials_in(changes)))
            return redirect(f"/memory/{id}?{request.GET.urlencode()}")
    context = {
        "form": form,
        "memory": memory,
        "is_outdated": is_outdated,
        "list_url": came_from(request, scope),
        "back": request.GET.urlencode(),
    }
    return render(request, "memories/edit.html", context)


@require_POST
@about_instance
def memory_pin(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    memory = change(scope, id, MemoryChanges(pinned=request.POST.get("pinned") == "true"))
    if not wants_fragment(request):
        # Without scripts: back to the page with the button, which is the memory's own page or the list.
        stays = "stay" in request.POST
        return redirect(f"/memory/{id}?{request.GET.urlencode()}" if stays else came_from(request, scope))
    return render(request, "memories/list.html#pin", {"memory": memory, "back": request.GET.urlencode()})


@require_POST
@about_instance
def memory_role_hint(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    """A role hint for the text that is being written; `use` accepts it."""
    content, use = request.POST.get("content", ""), request.POST.get("use", "")
    if use not in Role.values:
        hint = role_hint(content, request.POST.get("role", Role.CONTEXT))
        return render(request, "memories/_role_hint.html", {"hint": hint})
    field = MemoryForm(initial={"role": use})["role"].as_widget(attrs={"hx-swap-oob": "true"})
    return render(request, "memories/_role_hint.html", {"taken": Role(use).label, "role_field": field})


@require_POST
@about_instance
def memory_role(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    change(scope, id, read(MemoryChanges, {"role": request.POST.get("role", "")}))
    messages.success(request, "The role is changed. What it was before is kept in the history.")
    return redirect(f"/memory/{id}?{request.GET.urlencode()}")


@require_POST
@about_instance
def memory_tags(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    """Add the tags in `tag`, or remove the one in `untag`."""
    error = ""
    try:
        add, remove = read_tags(typed_tags(request.POST.get("tag", ""))), read_tags([request.POST.get("untag", "")])
        change_many(scope, [find_memory(scope, id).id], {}, add_tags=add, remove_tags=remove)
    except Invalid as problem:
        error = problem.reason
    if not wants_fragment(request):
        if error:
            messages.error(request, error)
        return redirect(f"/memory/{id}?{request.GET.urlencode()}")
    context = {"memory": find_memory(scope, id), "tags_error": error, "known_tags": known_tags(scope)}
    return render(request, "memories/detail.html#tags", {**context, "back": request.GET.urlencode()})


@require_http_methods(["GET", "POST"])
@about_instance
def memory_delete(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    memory = find_memory(scope, id)
    if request.method == "POST":
        messages.success(request, receipt_in_words(delete_memory(scope, id)))
        return redirect(came_from(request, scope))
    context = {
        "memory": memory,
        "parts": parts_of(scope, [memory.id]),
        "list_url": came_from(request, scope),
        "back": request.GET.urlencode(),
    }
    return render_part(request, "memories/delete.html", "question", context)


def read_tags(raw: list[str]) -> list[str]:
    return read(MemoryChanges, {"tags": raw}).tags or []


def receipt_in_words(receipt: Receipt) -> str:
    parts = [
        counted(n, *names)
        for n, names in (
            (receipt.versions, ("earlier version", "earlier versions")),
            (receipt.chunks, ("search entry", "search entries")),
            (receipt.attachments, ("attachment", "attachments")),
        )
        if n
    ]
    what = counted(receipt.deleted, "memory", "memories")
    rest = f"Nothing of {'it' if receipt.deleted == 1 else 'them'} is left."
    return f"Deleted {what}{' with ' + ', '.join(parts) if parts else ''}. {rest}"


def came_from(request: ConsoleRequest, scope: Scope) -> str:
    """The URL of the list the reader came from, with this page's instance."""
    query = QueryDict(request.GET.get("back", ""), mutable=True)
    query["instance"] = scope.instance.slug
    return f"/memory?{query.urlencode()}"


def _initial(query: QueryDict) -> dict[str, str]:
    """`/memory/new?sourceConversationId=…` fills in the conversation."""
    return {"source_conversation_id": query.get("sourceConversationId", "")}


def _suggestions(scope: Scope) -> dict[str, Any]:
    """The conversations and tags that the form suggests."""
    recent = Conversation.objects.filter(instance=scope.instance).order_by("-last_message_at", "-id")[:50]
    return {"conversations": list(recent), "tags": known_tags(scope)}


def _ready(request: ConsoleRequest, scope: Scope, saved: Saved) -> SafeString:
    """A new memory, with the way to it: the list may be filtered, sorted or turned so that it is not in sight."""
    said = "Saved. The assistant can use it on its next turn." + _redacted(saved.redacted)
    if not may_read(scope, saved.memory):
        return format_html("{} Only {} and superadmins can read it.", said, saved.memory.owner)
    hidden = " The filters below leave it out." if _is_left_out(request, scope, saved.memory) else ""
    link = f"/memory/{saved.memory.id}?{request.GET.urlencode()}"
    return format_html('{}{} <a href="{}">Open it</a>', said, hidden, link)


def _is_left_out(request: ConsoleRequest, scope: Scope, memory: Memory) -> bool:
    try:
        filters = filters_in(QueryDict(request.GET.get("back", "")))
    except Invalid:
        return False
    return bool(filters.narrowing()) and not matching(scope, filters).filter(id=memory.id).exists()


def _saved(before: Memory, after: Memory) -> str:
    """A message that mentions the history only if there is a new version: changed tags, for example, make none."""
    if after.updated_at == before.updated_at:
        return "Nothing was changed."
    leaves_version = any(getattr(after, name) != getattr(before, name) for name in VERSIONED)
    return "Saved. The earlier version is kept in its history." if leaves_version else "Saved."


def _redacted(kinds: object) -> str:
    return " Credentials in it were replaced before storing." if kinds else ""
