"""/memory/review: memories that wait for review, and deciding about them."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import truncatechars
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import Scope
from accounts.pages import (
    ConsoleRequest,
    about_instance,
    decided,
    page_number,
    render_part,
    render_question,
    ticked,
    wants_fragment,
    without,
)
from conversations.store import conversations_by_id
from memories.audit import note_private_reads
from memories.forms.reviewing import MergeForm, ReviewForm
from memories.models import Memory
from memories.review import inbox
from memories.review.inbox import Waiting, Why
from memories.views.bulk import NOTHING_CHOSEN, NOTHING_TICKED
from memories.views.editing import receipt_in_words
from memoryconsole.counting import counted
from memoryconsole.errors import Conflict, Invalid, NotFound

SIZE = 20
WHYS: dict[str, tuple[str, Why | None]] = {
    "": ("All", None),
    "conflict": ("Possible conflicts", "conflict"),
    "importance": ("Others", "importance"),
}


@require_GET
@about_instance
def review_list(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    why = request.GET.get("why", "")
    page = inbox.page_waiting(
        scope,
        WHYS.get(why, WHYS[""])[1],
        number=page_number(request),
        size=SIZE,
        anchor=request.GET.get("anchor", ""),
    )
    context = {
        "page": page,
        "rows": inbox.with_reasons(scope, page.rows),
        "conversations": conversations_by_id(scope, [memory.source_conversation_id for memory in page.rows]),
        "why": why,
        "whys": [(value, title) for value, (title, _) in WHYS.items()],
        "n_waiting": inbox.count_waiting(scope),
    }
    return render_part(request, "memories/review.html", "review", context)


@require_http_methods(["GET", "POST"])
@about_instance
def review_one(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    """GET shows the form for the corrected or merged text, or asks before rejecting; POST decides."""
    action = request.POST.get("action", "") or request.GET.get("action", "")
    try:
        found = inbox.find_waiting(scope, id)
        form = _form(request, action, found)
        is_done = request.method == "POST" and _decide(request, scope, found, action, form)
    except (Conflict, NotFound) as problem:
        if isinstance(problem, NotFound) and not wants_fragment(request):
            raise
        messages.warning(request, problem.detail)
        is_done = True
    return _answer(request, scope, id) if is_done else _ask(request, found, action, form)


@require_POST
@about_instance
def review_bulk(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    chosen = ticked(request)
    action = request.POST.get("action", "")
    if not chosen:
        messages.warning(request, NOTHING_TICKED)
    elif action == "approve":
        n = inbox.approve_many(scope, chosen)
        messages.success(request, f"Approved {counted(n, 'memory', 'memories')}.{_already_reviewed(len(chosen) - n)}")
    elif action == "reject" and not request.POST.get("confirmed"):
        rows = list(inbox.waiting(scope).filter(id__in=chosen).order_by("-id"))
        note_private_reads(scope, rows)
        return render(request, "memories/review_reject.html", {"memories": rows, "list_url": _list_url(request)})
    elif action == "reject":
        receipt = inbox.reject(scope, chosen)
        messages.success(request, f"{receipt_in_words(receipt)}{_already_reviewed(len(chosen) - receipt.deleted)}")
    else:
        messages.warning(request, NOTHING_CHOSEN)
    return redirect(_list_url(request))


def _form(request: ConsoleRequest, action: str, found: Waiting) -> ReviewForm | MergeForm | None:
    data = request.POST if request.method == "POST" and "content" in request.POST else None
    if action == "merge":
        return MergeForm(data, initial={"content": found.memory.content})
    if action == "edit":
        memory = found.memory
        initial = {"content": memory.content, "category": memory.category, "importance": str(memory.importance)}
        return ReviewForm(data, initial=initial)
    return None


def _decide(
    request: ConsoleRequest, scope: Scope, found: Waiting, action: str, form: ReviewForm | MergeForm | None
) -> bool:
    """Return False if the form has to be shown again."""
    id = found.memory.id
    if isinstance(form, MergeForm):
        text = form.text()
        if text is None:
            return False
        merged = inbox.merge_waiting(scope, id, text)
        done = f"Merged into “{_short(merged)}”. What it said before is in its history."
    elif isinstance(form, ReviewForm):
        changes = form.changes()
        if changes is None:
            return False
        done = f"Approved: “{_short(inbox.approve(scope, id, changes))}”"
    elif action == "approve":
        done = f"Approved: “{_short(inbox.approve(scope, id))}”"
    elif action == "keep":
        done = f"Both are kept: “{_short(inbox.keep_both(scope, id))}”"
    elif action == "reject":
        done = f"Rejected. {receipt_in_words(inbox.reject(scope, [id]))}"
    else:
        raise Invalid({"action": ["Choose approve, edit, keep, merge or reject."]})
    messages.success(request, done)
    return True


def _ask(request: ConsoleRequest, found: Waiting, action: str, form: ReviewForm | MergeForm | None) -> HttpResponse:
    is_question = action == "reject" or form is not None
    if not is_question or (action == "merge" and found.other is None):
        return redirect(_list_url(request))
    context: dict[str, Any] = {"waiting": found, "form": form, "action": action, "list_url": _list_url(request)}
    return render_question(request, "memories/review_one.html", context)


def _answer(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    """HTMX gets the new number of waiting memories, and messages."""
    if not wants_fragment(request):
        return redirect(_list_url(request))
    context = {"n_waiting": inbox.count_waiting(scope)}
    return decided(request, f"waiting-{id}", "memories/review.html#decided", context)


def _list_url(request: ConsoleRequest) -> str:
    return f"/memory/review?{without(request.GET, 'action', 'anchor').urlencode()}"


def _already_reviewed(n: int) -> str:
    return f" {n:,} had been reviewed already." if n else ""


def _short(memory: Memory) -> str:
    return truncatechars(memory.content, 80)
