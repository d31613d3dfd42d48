"""/recall/golden: golden queries, how well recall answers them, and trying other settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, is_path, wants_fragment
from instances.store import InstanceChanges, change_instance
from memories.audit import note_private_reads
from memories.filters import readable
from memories.models import Memory
from memories.recall.golden import (
    Answer,
    Golden,
    GoldenDraft,
    Variant,
    change_golden,
    delete_golden,
    evaluate,
    find_golden,
    golden_queries,
    hindrance,
    mark,
    with_marks,
)
from memories.recall.request import RecallSettings
from memories.views.recall_settings import changed_values, changes_for, in_words, knobs_for, settings_in
from memoryconsole.errors import Invalid
from memoryconsole.inputs import read, read_or_default, snake_name

# The page runs at most this many, because a person waits for it; the command has no limit.
RUN_AT_ONCE = 100
NAMES = {
    "current": "Current",
    "vector": "Meaning alone",
    "keyword": "Words alone",
    "changed": "Changed",
}
MARKS = {"yes": True, "no": False, "none": None}


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of one variant, and its difference to the current settings."""

    variant: str
    value: float | None
    difference: float = 0.0
    is_count: bool = False
    missed: Sequence[Memory] = ()
    unwanted: Sequence[Memory] = ()

    @property
    def is_better(self) -> bool:
        return self.difference < 0 if self.is_count else self.difference > 0


@dataclass(frozen=True, slots=True)
class Line:
    """A figure, or a golden query, across all variants."""

    title: str
    cells: list[Cell]
    golden: Golden | None = None


@dataclass(frozen=True, slots=True)
class Run:
    names: list[str]
    figures: list[Line]
    queries: list[Line]
    n: int
    hindrance: str


@require_GET
@about_instance
def golden_list(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    goldens = golden_queries(scope)
    memories = _memories(scope, goldens)
    settings, problem = read_or_default(RecallSettings, settings_in(request.GET))
    changes = changes_for(scope.instance, settings)
    is_run = "run" in request.GET and bool(goldens) and problem is None
    context = {
        "goldens": goldens,
        "memories": memories,
        "knobs": knobs_for(scope.instance, request.GET, problem),
        "changes": changes,
        "problem": in_words(problem),
        "run": _run(evaluate(scope, settings if changes else None, at_most=RUN_AT_ONCE), memories) if is_run else None,
        "at_once": RUN_AT_ONCE,
    }
    return render(request, "recall/golden.html", context)


@require_http_methods(["GET", "POST"])
@about_instance
def golden_edit(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    row = find_golden(scope, id)
    golden = with_marks(scope, row)
    problem = None
    if request.method == "POST":
        try:
            change_golden(scope, id, _draft(request, golden))
        except Invalid as invalid:
            problem = invalid
        else:
            messages.success(request, "The golden query is changed.")
            return redirect(f"/recall/golden?instance={scope.instance.slug}")
    context = {
        "golden": golden,
        "memories": _memories(scope, [golden]),
        "typed": request.POST.get("query", row.query),
        "user_id": request.POST.get("userId", row.owner),
        "problem": problem,
    }
    return render(request, "recall/golden_edit.html", context)


@require_POST
@about_instance
def golden_delete(request: ConsoleRequest, scope: Scope, id: UUID) -> HttpResponse:
    delete_golden(scope, id)
    messages.success(request, "The golden query is deleted. The memories are as they were.")
    return redirect(f"/recall/golden?instance={scope.instance.slug}")


@require_POST
@about_instance
def recall_mark(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    """Mark a memory as expected or not, from the playground or a past recall. This creates golden queries."""
    draft = read(GoldenDraft, {name: request.POST.get(name, "") for name in ("query", "userId")})
    expected = MARKS.get(request.POST.get("expected", ""))
    memory_id = request.POST.get("memory", "")
    mark(scope, query=draft.query, user_id=draft.user_id, raw_memory_id=memory_id, expected=expected)
    if wants_fragment(request):
        context = {"memory_id": memory_id, "mark": expected, "typed": draft.query, "user_id": draft.user_id}
        return render(request, "recall/_mark.html", context)
    done = {True: "Marked as expected.", False: "Marked as unexpected.", None: "The mark is taken back."}
    messages.success(request, f"{done[expected]} It is part of the golden queries.")
    return redirect(_back(request, scope))


@require_POST
@about_instance
def golden_settings(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    """Save the settings that were tried as the instance's."""
    wanted = changed_values(scope.instance, read(RecallSettings, settings_in(request.POST)))
    if wanted:
        change_instance(scope, read(InstanceChanges, {f"recall_{snake_name(name)}": wanted[name] for name in wanted}))
        messages.success(request, "The settings are saved. Every recall uses them from now on.")
    else:
        messages.warning(request, "Nothing differs from the settings as they are.")
    return redirect(f"/recall/golden?{urlencode({'instance': scope.instance.slug, 'run': 'yes'})}")


def _memories(scope: Scope, goldens: Sequence[Golden]) -> dict[UUID, Memory]:
    ids = {id for golden in goldens for id in [*golden.expected, *golden.unexpected]}
    found = {memory.id: memory for memory in readable(scope).filter(id__in=ids)} if ids else {}
    note_private_reads(scope, found.values())
    return found


def _draft(request: ConsoleRequest, golden: Golden) -> GoldenDraft:
    """The draft from the form, which has a choice for each memory: expected, unexpected, or neither."""
    chosen = {id: request.POST.get(f"mark-{id}", "none") for id in [*golden.expected, *golden.unexpected]}
    return read(
        GoldenDraft,
        {
            "query": request.POST.get("query", ""),
            "userId": request.POST.get("userId", ""),
            "expected": [id for id, word in chosen.items() if word == "yes"],
            "unexpected": [id for id, word in chosen.items() if word == "no"],
        },
    )


def _back(request: ConsoleRequest, scope: Scope) -> str:
    wanted = request.POST.get("next", "")
    return wanted if wanted.startswith("/recall") and is_path(wanted) else f"/recall?instance={scope.instance.slug}"


def _run(variants: Sequence[Variant], memories: Mapping[UUID, Memory]) -> Run:
    current = variants[0]
    return Run(
        names=[_title(variant) for variant in variants],
        figures=_figures(variants),
        queries=[
            Line(
                answer.golden.row.query,
                [_cell(_title(variant), variant.answers[n], answer, memories) for variant in variants],
                answer.golden,
            )
            for n, answer in enumerate(current.answers)
        ],
        n=len(current.answers),
        hindrance=hindrance(variants),
    )


def _title(variant: Variant) -> str:
    """The title with k, because a variant with a changed limit has another one."""
    return f"{NAMES[variant.name]}, k = {variant.k}"


def _figures(variants: Sequence[Variant]) -> list[Line]:
    names = {"recall": "Recall@k", "reciprocal_rank": "MRR", "ndcg": "nDCG@k"}
    lines = [
        Line(title, [_figure(variant, variants[0], name) for variant in variants]) for name, title in names.items()
    ]
    unwanted = [
        Cell(_title(variant), variant.unwanted, variant.unwanted - variants[0].unwanted, is_count=True)
        for variant in variants
    ]
    return [*lines, Line("Unexpected ones given", unwanted)]


def _figure(variant: Variant, current: Variant, name: str) -> Cell:
    if variant.quality is None or current.quality is None:
        return Cell(_title(variant), None)
    value: float = getattr(variant.quality, name)
    return Cell(_title(variant), value, round(value - getattr(current.quality, name), 4))


def _cell(title: str, answer: Answer, current: Answer, memories: Mapping[UUID, Memory]) -> Cell:
    return Cell(
        variant=title,
        value=answer.quality.ndcg if answer.quality else None,
        difference=round(answer.quality.ndcg - current.quality.ndcg, 4) if answer.quality and current.quality else 0.0,
        missed=_named(answer.missed, memories),
        unwanted=_named(answer.unwanted, memories),
    )


def _named(ids: Sequence[UUID], memories: Mapping[UUID, Memory]) -> list[Memory]:
    return [memories[id] for id in ids if id in memories]
