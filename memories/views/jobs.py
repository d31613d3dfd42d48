"""/memory/embed and /memory/jobs/<id>: start making the missing vectors, and watch the progress."""

from dataclasses import dataclass, replace

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from accounts.access import Scope
from accounts.pages import ConsoleRequest, about_instance, render_part, wants_fragment
from memories.embedding.backfill import KIND, ask_for_embedding, find_job
from memories.embedding.embedder import model_of
from memories.filters import IS_NOT_EMBEDDED, readable
from memories.models import Job

COUNTED_UP_TO = 10_000


@dataclass(frozen=True, slots=True)
class Embedding:
    """The line about vectors: how many are missing, the model, and the job that is making them."""

    missing: int = 0
    model: str = ""
    is_switching: bool = False
    job: Job | None = None

    @property
    def is_worth_saying(self) -> bool:
        return bool(self.missing or self.is_switching or self.job)

    @property
    def counted_up_to(self) -> int:
        """Where counting stopped; 0 if everything was counted."""
        return COUNTED_UP_TO if self.missing > COUNTED_UP_TO else 0

    @property
    def is_going_on(self) -> bool:
        return self.job is not None and self.job.state in Job.UNFINISHED


def embedding_of(scope: Scope) -> Embedding:
    """No query if the instance has no embedder: then a warning is shown instead."""
    model, used = model_of(scope.instance), scope.instance.embedding_model
    if not model:
        return Embedding()
    missing = readable(scope).filter(IS_NOT_EMBEDDED)[: COUNTED_UP_TO + 1].count()
    is_switching = used not in ("", model)
    if not missing and not is_switching:
        return Embedding(model=model)
    jobs = Job.objects.filter(instance=scope.instance, kind=KIND, state__in=Job.UNFINISHED)
    return Embedding(missing, model, is_switching, jobs.order_by("-id").first())


@require_http_methods(["GET", "POST"])
@about_instance
def memory_embed(request: ConsoleRequest, scope: Scope) -> HttpResponse:
    if request.method == "POST" and model_of(scope.instance):
        ask_for_embedding(scope)
    if wants_fragment(request):
        return render(request, "memories/embedding.html#line", {"embedding": embedding_of(scope)})
    return redirect(f"/memory?{request.GET.urlencode()}")


@require_GET
@about_instance
def memory_job(request: ConsoleRequest, scope: Scope, id: str) -> HttpResponse:
    job = find_job(scope, id)
    return render_part(request, "memories/embedding.html", "line", {"embedding": replace(embedding_of(scope), job=job)})
