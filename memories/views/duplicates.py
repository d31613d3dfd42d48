"""/memory/duplicates: pairs of similar memories side by side, and deciding about them."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
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
from memories.forms.reviewing import MergeForm, PairingForm
from memories.models import DuplicatePair, Job
from memories.paging import Page
from memories.review import duplicates
from memories.review.duplicates import NEAREST, Kind, Likeness
from memories.review.pairing import KIND, ask_for_pairs
from memories.views.bulk import NOTHING_CHOSEN, NOTHING_TICKED
from memoryconsole.counting import counted
from memoryconsole.errors import Conflict, Invalid, NotFound

SIZE = 10
KINDS: dict[str, tuple[str, Kind | None]] = {
    "": ("All", None),
    "duplicate": ("Duplicates", "duplicate"),
    "conflict": ("Possible conflicts", "conflict"),
}


@require_GET
@about_instance
def duplicate_list(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    # Read before the pairs, so that all pairs are there if it says that it is done.
    job = Job.objects.filter(instance=scope.instance, kind=KIND).order_by("-id").first()
    groups = duplicates.groups_of_pairs(scope, _kind(request))
    page, n_pairs = _page(request, groups), duplicates.count_pairs(scope, _kind(request))
    context = {
        "page": page,
        "clusters": duplicates.clusters(scope, groups[page.start - 1 : page.end] if groups else []),
        "kind": _kind(request) or "",
        "kinds": [(value, title) for value, (title, _) in KINDS.items()],
        "job": job,
        "is_going_on": job is not None and job.state in Job.UNFINISHED,
        "form": PairingForm(initial={"threshold": f"{_threshold(scope, job):g}"}),
        "is_more": n_pairs > sum(map(len, groups)),
        **_count(n_pairs),
    }
    return render_part(request, "memories/duplicates.html", "duplicates", context)


@require_POST
@about_instance
def duplicate_search(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    form = PairingForm(request.POST)
    if form.is_valid():
        ask_for_pairs(scope, threshold=form.cleaned_data["threshold"])
        messages.success(request, "Looking for duplicates. Nothing is changed by it.")
    else:
        messages.error(request, "Choose a similarity from 0.5 to 1.")
    return redirect(_list_url(request))


@require_http_methods(["GET", "POST"])
@about_instance
def duplicate_pair(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    """GET shows the form for the merged text; POST decides."""
    try:
        found = duplicates.find_pair(scope, id)
        form = MergeForm(request.POST if "content" in request.POST else None, initial={"content": found.memory.content})
        is_done = request.method == "POST" and _decide(request, scope, found, form)
    except (Conflict, NotFound) as problem:
        if isinstance(problem, NotFound) and not wants_fragment(request):
            raise
        messages.warning(request, problem.detail)
        is_done = True
    return _answer(request, scope, id) if is_done else _ask(request, found, form)


@require_POST
@about_instance
def duplicate_bulk(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    chosen = ticked(request)
    if not chosen:
        messages.warning(request, NOTHING_TICKED)
    elif request.POST.get("action") == "merge":
        merged, left = duplicates.merge_many(scope, chosen)
        note = f" {left:,} must be looked at one by one, or had been decided about." if left else ""
        messages.success(request, f"Merged {counted(merged, 'duplicate', 'duplicates')} into the older ones.{note}")
    elif request.POST.get("action") == "keep":
        messages.success(request, f"Kept both of {counted(duplicates.keep_both(scope, chosen), 'pair', 'pairs')}.")
    else:
        messages.warning(request, NOTHING_CHOSEN)
    return redirect(_list_url(request))


def _decide(request: ConsoleRequest, scope: Scope, found: Likeness, form: MergeForm) -> bool:
    """Return False if the form has to be shown again."""
    action = request.POST.get("action", "")
    if action == "keep":
        duplicates.keep_both(scope, [found.pair.id])
        messages.success(request, "Both are kept, and not shown as a pair again.")
        return True
    if action != "merge":
        raise Invalid({"action": ["Choose merge or keep."]})
    text = form.text()
    if text is None:
        return False
    merged = duplicates.merge_pair(scope, found.pair.id, text)
    messages.success(request, f"Merged into “{truncatechars(merged.content, 80)}”. The other one is superseded by it.")
    return True


def _ask(request: ConsoleRequest, found: Likeness, form: MergeForm) -> HttpResponse:
    context = {"found": found, "form": form, "list_url": _list_url(request)}
    return render_question(request, "memories/duplicate_merge.html", context)


def _answer(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    if not wants_fragment(request):
        return redirect(_list_url(request))
    n_pairs = duplicates.count_pairs(scope, _kind(request))
    return decided(request, f"pair-{id}", "memories/duplicates.html#decided", _count(n_pairs))


def _kind(request: ConsoleRequest) -> Kind | None:
    return KINDS.get(request.GET.get("kind", ""), KINDS[""])[1]


def _count(n_pairs: int) -> dict[str, Any]:
    most = duplicates.COUNTED_UP_TO
    return {"n_pairs": n_pairs, "pairs": f"{most:,}+ pairs" if n_pairs > most else counted(n_pairs, "pair", "pairs")}


def _threshold(scope: Scope, last: Job | None) -> float:
    """The threshold of the last job, or else the instance's."""
    return float(last.payload["threshold"]) if last else scope.instance.dedupe_threshold


def _page(request: ConsoleRequest, groups: list[list[DuplicatePair]]) -> Page[DuplicatePair]:
    """A page of groups, not of pairs. A number past the end means the last page."""
    number_shown = max(1, min(page_number(request), -(-len(groups) // SIZE)))
    first = [group[0] for group in groups[(number_shown - 1) * SIZE : number_shown * SIZE]]
    return Page(first, number_shown, SIZE, len(groups), NEAREST)


def _list_url(request: ConsoleRequest) -> str:
    return f"/memory/duplicates?{without(request.GET, 'anchor').urlencode()}"
