"""/memory/<id>/history: the versions of a memory, and restoring them."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, page_number, render_part
from memories.history import history_page, steps
from memories.models import Memory
from memories.store import find_memory, restore
from memories.views.editing import came_from
from memories.vocabulary import Review, Status
from memoryconsole.errors import NotFound
from memoryconsole.inputs import whole_number

SIZE = 20


@require_GET
@about_instance
def memory_history(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    memory = find_memory(scope, id)
    page = history_page(
        scope,
        memory,
        number=page_number(request),
        size=SIZE,
        anchor=request.GET.get("anchor", ""),
    )
    context = {
        "memory": memory,
        "page": page,
        "steps": steps(scope, memory, page.rows),
        "list_url": came_from(request, scope),
        "back": request.GET.urlencode(),
    }
    return render_part(request, "memories/history.html", "history", context)


@require_POST
@about_instance
def memory_restore(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    """Restore `version`; without it, make a superseded memory active again with its current text."""
    before = find_memory(scope, id)
    number = _version(request)
    page = f"/memory/{id}{'' if number is None else '/history'}?{request.GET.urlencode()}"
    if number is None and before.status == Status.ACTIVE:
        messages.info(request, "It is in use already.")
        return redirect(page)
    after = restore(scope, id, number)
    say = messages.info if after.updated_at == before.updated_at else messages.success
    say(request, _done(before, after, number))
    return redirect(page)


def _version(request: ConsoleRequest) -> int | None:
    if "version" not in request.POST:
        return None
    number = whole_number(request.POST["version"])
    if number is None:
        raise NotFound
    return number


def _done(before: Memory, after: Memory, number: int | None) -> str:
    if before.status == Status.SUPERSEDED:
        used = "It waits for review again" if after.review == Review.PENDING else "The assistant can use it again"
        done = f"{used}." if number is None else f"{used}, and it says what version {number} said."
        has_lost_key = after.key != before.key
        return f"{done} Another memory has its key “{before.key}” now; it has none." if has_lost_key else done
    if after.updated_at == before.updated_at:
        return f"It says already what version {number} said."
    return f"It says again what version {number} said. What it said until now is a version too."
