"""/memory/<id>/history: what a memory said before, and bringing it back."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, page_number, render_part
from memories.history import history_page, steps
from memories.store import find_memory, restore
from memoryconsole.errors import NotFound

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
        "back": request.GET.urlencode(),
    }
    return render_part(request, "memories/history.html", "history", context)


@require_POST
@about_instance
def memory_restore(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    before = find_memory(scope, id)
    number = request.POST.get("version", "")
    if not number.isdecimal() or len(number) > 9:
        raise NotFound
    after = restore(scope, id, int(number))
    if after.updated_at == before.updated_at:
        messages.info(request, f"It says already what version {number} said.")
    else:
        messages.success(request, f"It says again what version {number} said. What it said until now is a version too.")
    return redirect(f"/memory/{id}/history?{request.GET.urlencode()}")
